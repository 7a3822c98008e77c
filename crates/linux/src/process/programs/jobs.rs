//! The jobs of a lab: what was started, what became of it, and who waits to be told.

use std::collections::BTreeMap;

use twinnet_lab::protocol::{JobRow, Reply};

use super::orders::Outcome;
use crate::service::{ErrorName, LabError, Responder};

/// Ended jobs that are remembered; beyond, the oldest is forgotten.
const REMEMBERED: usize = 10_000;

/// The outcome of a job.
enum State {
    /// The order is on its way; the reply goes to who ordered.
    Starting(Option<Responder>),
    /// It runs.
    Running,
    /// It has ended.
    Ended(Outcome),
    /// Its host was killed, so how it ended is not known.
    Lost(LabError),
}

struct Job {
    host: String,
    argv: Vec<String>,
    pid: Option<i32>,
    state: State,
    waiting: Vec<Responder>,
}

/// All jobs, by number.
#[derive(Default)]
pub struct Jobs {
    jobs: BTreeMap<u64, Job>,
    last: u64,
    ended: usize,
}

impl Jobs {
    /// Adds a job whose order is on its way; `reply` is answered when it runs or is refused.
    pub fn add(&mut self, host: &str, argv: Vec<String>, reply: Responder) -> u64 {
        self.last += 1;
        self.jobs.insert(
            self.last,
            Job { host: host.to_owned(), argv, pid: None, state: State::Starting(Some(reply)), waiting: Vec::new() },
        );
        self.last
    }

    /// The job runs.
    pub fn started(&mut self, number: u64, pid: i32) {
        if let Some(job) = self.jobs.get_mut(&number) {
            job.pid = Some(pid);
            if let State::Starting(Some(reply)) = std::mem::replace(&mut job.state, State::Running) {
                reply.send(Ok(Reply::Job { job: number, pid }));
            }
        }
    }

    /// The job could not be started; it is forgotten.
    pub fn refused(&mut self, number: u64, error: LabError) {
        if let Some(Job { state: State::Starting(Some(reply)), .. }) = self.jobs.remove(&number) {
            reply.send(Err(error));
        }
    }

    /// The job has ended.
    pub fn ended(&mut self, number: u64, outcome: Outcome) {
        if let Some(job) = self.jobs.get_mut(&number) {
            job.state = State::Ended(outcome);
            for reply in job.waiting.drain(..) {
                reply.send(Ok(how_it_ended(&outcome)));
            }
            self.ended += 1;
            self.forget_oldest();
        }
    }

    /// The host `host` (all hosts with `None`) is gone with its programs.
    pub fn lose(&mut self, host: Option<&str>, error: &LabError) {
        for job in self.jobs.values_mut().filter(|job| host.is_none_or(|host| job.host == host)) {
            if matches!(job.state, State::Starting(_) | State::Running) {
                if let State::Starting(Some(reply)) = std::mem::replace(&mut job.state, State::Lost(error.clone())) {
                    reply.send(Err(error.clone()));
                }
                for reply in job.waiting.drain(..) {
                    reply.send(Err(error.clone()));
                }
                self.ended += 1;
            }
        }
        self.forget_oldest();
    }

    /// Answers `reply` when the job has ended, at once when it has.
    pub fn wait(&mut self, number: u64, reply: Responder) {
        match self.jobs.get_mut(&number) {
            None => reply.send(Err(unknown(number))),
            Some(Job { state: State::Ended(outcome), .. }) => reply.send(Ok(how_it_ended(outcome))),
            Some(Job { state: State::Lost(error), .. }) => reply.send(Err(error.clone())),
            Some(job) => job.waiting.push(reply),
        }
    }

    /// The program of a job; nothing if it is forgotten.
    #[must_use]
    pub fn program(&self, number: u64) -> &str {
        self.jobs.get(&number).and_then(|job| job.argv.first()).map_or("", String::as_str)
    }

    /// The host of a job that may be signalled; `None` when it has ended.
    ///
    /// # Errors
    /// `UnknownJob`.
    pub fn host_of_running(&self, number: u64) -> Result<Option<&str>, LabError> {
        let job = self.jobs.get(&number).ok_or_else(|| unknown(number))?;
        Ok(matches!(job.state, State::Starting(_) | State::Running).then_some(job.host.as_str()))
    }

    /// All jobs, as the protocol shows them.
    #[must_use]
    pub fn list(&self) -> Vec<JobRow> {
        let show = |(number, job): (&u64, &Job)| {
            let (state, status, signal) = match &job.state {
                State::Starting(_) => ("starting", None, None),
                State::Running => ("running", None, None),
                State::Ended(outcome) => ("ended", outcome.status, outcome.signal),
                State::Lost(_) => ("lost", None, None),
            };
            let (host, argv) = (job.host.clone(), job.argv.clone());
            JobRow { job: *number, host, argv, pid: job.pid, state, status, signal }
        };
        self.jobs.iter().map(show).collect()
    }

    fn forget_oldest(&mut self) {
        while self.ended > REMEMBERED {
            let oldest = self
                .jobs
                .iter()
                .find(|(_, job)| matches!(job.state, State::Ended(_) | State::Lost(_)))
                .map(|(number, _)| *number);
            if let Some(number) = oldest {
                self.jobs.remove(&number);
            }
            self.ended -= 1;
        }
    }
}

fn how_it_ended(outcome: &Outcome) -> Reply {
    let Outcome { status, signal, limit, elapsed_ns } = *outcome;
    Reply::JobEnded { status, signal, limit, elapsed_ps: elapsed_ns.saturating_mul(1000) }
}

fn unknown(number: u64) -> LabError {
    LabError::new(ErrorName::UnknownJob, format!("there is no job {number}"), "`jobs` lists those that are known")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{channel, Receiver};
    use twinnet_lab::protocol::Answer;

    fn reply() -> (Responder, Receiver<Answer>) {
        let (sender, receiver) = channel();
        (Responder::new(move |result| sender.send(result).unwrap_or(())), receiver)
    }

    fn exited(status: i32) -> Outcome {
        Outcome { status: Some(status), signal: None, limit: false, elapsed_ns: 7 }
    }

    #[test]
    fn waits_before_and_after_the_end_are_answered_alike() {
        let mut jobs = Jobs::default();
        let ((started, on_start), (early, on_early), (late, on_late)) = (reply(), reply(), reply());
        let job = jobs.add("h1", vec!["true".to_owned()], started);
        jobs.wait(job, early);
        jobs.started(job, 5);
        assert_eq!(on_start.recv().unwrap().unwrap(), Reply::Job { job: 1, pid: 5 });
        jobs.ended(job, exited(3));
        jobs.wait(job, late);
        let expected = Reply::JobEnded { status: Some(3), signal: None, limit: false, elapsed_ps: 7000 };
        assert_eq!((on_early.recv().unwrap().unwrap(), on_late.recv().unwrap().unwrap()), (expected.clone(), expected));
    }

    #[test]
    fn a_lost_host_answers_every_wait_with_the_reason() {
        let mut jobs = Jobs::default();
        let ((started, on_start), (waiting, on_end)) = (reply(), reply());
        let job = jobs.add("h1", vec![], started);
        jobs.wait(job, waiting);
        let error = LabError::new(ErrorName::HostEnded, "gone", "");
        jobs.lose(Some("h2"), &error);
        assert!(on_end.try_recv().is_err());
        jobs.lose(Some("h1"), &error);
        assert_eq!(
            (on_start.recv().unwrap().unwrap_err(), on_end.recv().unwrap().unwrap_err()),
            (error.clone(), error)
        );
        assert_eq!(jobs.host_of_running(job).unwrap(), None);
    }

    #[test]
    fn only_the_latest_ended_jobs_are_remembered() {
        let mut jobs = Jobs::default();
        for _ in 0..=REMEMBERED {
            let job = jobs.add("h1", vec![], reply().0);
            jobs.started(job, 1);
            jobs.ended(job, exited(0));
        }
        assert_eq!(jobs.host_of_running(1).unwrap_err().name, "UnknownJob");
        assert!(jobs.host_of_running(2).is_ok());
    }
}
