//! The first process of a host: it stands in the host's namespaces, starts the host's programs, ends them when
//! their time is over and tells how they ended. When it dies the kernel ends all of them; it ends when the lab
//! closes its socket.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::mount::{mount, mount_bind, mount_change, unmount, MountFlags, MountPropagationFlags, UnmountFlags};
use rustix::thread::{move_into_link_name_space, LinkNameSpaceType};
use twinnet_lab::network::ImageSpec;

use super::image::enter;
use super::kernel_files;
use super::orders::{Notice, Order, Outcome, ProgramOrder};
use super::program;
use super::zygote::keep_only;
use crate::kernel::open_vswitch;
use crate::process::control::message::{self, Received};
use crate::process::start_up::{news_of_children, set_title, signal_descriptor, waiting_signals};
use crate::service::{ErrorName, LabError};

/// Time between the signal that asks a program to end and the one that ends it.
const GRACE: Duration = Duration::from_secs(1);

/// The parts of the first process of a host.
pub struct HostSetUp {
    /// Name of the host.
    pub name: String,
    /// Its network namespace.
    pub network: OwnedFd,
    /// The socket that orders come from.
    pub socket: OwnedFd,
    /// Content of its `/etc/hosts`.
    pub hosts: OwnedFd,
    /// The file to be its `/proc/cpuinfo`, where that is not the kernel's own.
    pub processor: Option<&'static str>,
    /// The image whose files it has.
    pub image: Option<Box<ImageSpec>>,
    /// The files that take it into the control groups of its limits.
    pub groups: Vec<String>,
}

/// Sets the host up and serves orders until the lab is gone.
pub fn run(set_up: HostSetUp) -> ! {
    let HostSetUp { name, network, socket, hosts, processor, image, groups } = set_up;
    let furnished = join(&groups).and_then(|()| furnish(&name, network, &hosts, processor, image.as_deref()));
    drop(hosts);
    let status = match furnished {
        Ok(()) => i32::from(keep_only(socket).and_then(Host::serve).is_err()),
        Err(error) => {
            let error =
                LabError::new(ErrorName::HostNotReady, format!("host {name:?}: {}", error.message), error.remedy);
            tell(&socket, &Notice::Failed { error });
            1
        }
    };
    // SAFETY: ends the process, and with it all processes of its PID namespace.
    unsafe { libc::_exit(status) }
}

/// Tells, in the place of a first process that could not be made, why not.
pub fn tell_failure(set_up: &HostSetUp, error: &io::Error) {
    let message = format!("host {:?}: making its first process: {error}", set_up.name);
    let remedy = "raise the limits of processes (ulimit -u) and of PID namespaces (sysctl user.max_pid_namespaces)";
    tell(&set_up.socket, &Notice::Failed { error: LabError::new(ErrorName::HostNotReady, message, remedy) });
}

/// Enters the host's network, and mounts what shows it.
fn furnish(
    name: &str,
    network: OwnedFd,
    hosts: &OwnedFd,
    processor: Option<&str>,
    image: Option<&ImageSpec>,
) -> Result<(), LabError> {
    set_title(&format!("twinnet: {name}"));
    let content = read_all(hosts).map_err(failure("reading the names of hosts"))?;
    move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))
        .map_err(kernel("entering its network namespace"))?;
    drop(network);
    rustix::system::sethostname(name.as_bytes()).map_err(kernel("setting its host name"))?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(kernel("making its mounts private"))?;
    if let Some(image) = image {
        // /sys serves as the folder that is covered: the machine's root is left behind.
        enter(image, Path::new("/sys"))?;
        return name_hosts(&content).map_err(failure("writing /etc/hosts of the image"));
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    // The file must stand on some file system to be bound over /etc/hosts; /sys serves for a moment, before it is
    // covered by the host's own.
    mount("hosts", "/sys", "tmpfs", flags, Some(c"mode=0755,size=64m"))
        .map_err(kernel("mounting a tmpfs for /etc/hosts"))?;
    fs::write("/sys/hosts", content).map_err(failure("writing /etc/hosts"))?;
    mount_bind("/sys/hosts", "/etc/hosts").map_err(kernel("mounting its own /etc/hosts"))?;
    unmount("/sys", UnmountFlags::DETACH).map_err(kernel("unmounting the tmpfs for /etc/hosts"))?;
    mount("sysfs", "/sys", "sysfs", flags, None).map_err(kernel("mounting its own /sys"))?;
    kernel_files::keep_sys().map_err(failure("making the machine's files in /sys read-only"))?;
    mount("proc", "/proc", "proc", flags, None).map_err(kernel("mounting its own /proc"))?;
    kernel_files::keep_proc().map_err(failure("making the machine's files in /proc read-only"))?;
    if let Some(processor) = processor {
        mount_bind(processor, "/proc/cpuinfo").map_err(kernel("mounting its own /proc/cpuinfo"))?;
    }
    if name == open_vswitch::HOST {
        open_vswitch::mount_directory()?;
    }
    Ok(())
}

/// Enters the control groups that limit the programs of the host; what it starts stays in them.
fn join(groups: &[String]) -> Result<(), LabError> {
    groups.iter().try_for_each(|group| fs::write(group, "0")).map_err(failure("entering its control groups"))
}

/// Writes the names of hosts into the image, whatever it has there.
fn name_hosts(content: &[u8]) -> io::Result<()> {
    fs::create_dir_all("/etc")?;
    match fs::remove_file("/etc/hosts") {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => fs::write("/etc/hosts", content),
    }
}

/// All of a memfd that several processes read: the position is theirs in common, so it is not used.
fn read_all(memfd: &OwnedFd) -> io::Result<Vec<u8>> {
    let file = File::from(memfd.try_clone()?);
    let mut content = vec![0; usize::try_from(file.metadata()?.len()).unwrap_or(0)];
    file.read_exact_at(&mut content, 0)?;
    Ok(content)
}

fn kernel(what: &'static str) -> impl Fn(rustix::io::Errno) -> LabError {
    move |error| failure(what)(error.into())
}

fn failure(what: &'static str) -> impl Fn(io::Error) -> LabError {
    move |error| {
        LabError::new(
            ErrorName::HostNotReady,
            format!("{what}: {error}"),
            "run `twinnet doctor` to see what this machine permits",
        )
    }
}

/// A program that runs.
struct Job {
    number: u64,
    started: Instant,
    /// The time when the next signal of the time limit is due.
    due: Option<Instant>,
    /// `true` if the time limit has struck.
    limit: bool,
    /// The time when a signal stopped it.
    stopped: Option<Instant>,
}

struct Host {
    socket: OwnedFd,
    /// By process, which is also the process group.
    jobs: HashMap<i32, Job>,
    /// Groups that the time limit has struck and whose grace is not over, although their leader has ended.
    condemned: Vec<(i32, Instant)>,
}

impl Host {
    fn serve(socket: OwnedFd) -> io::Result<()> {
        let signals = signal_descriptor(&[libc::SIGCHLD])?;
        let mut host = Self { socket, jobs: HashMap::new(), condemned: Vec::new() };
        let mut buffer = vec![0; message::PACKET_BYTES];
        loop {
            let timeout = host.next_due().map(|due| due.saturating_duration_since(Instant::now()));
            let timeout = timeout.and_then(|left| Timespec::try_from(left).ok());
            let mut watched = [PollFd::new(&host.socket, PollFlags::IN), PollFd::new(&signals, PollFlags::IN)];
            // An interrupted wait finds nothing ready.
            let _ = rustix::event::poll(&mut watched, timeout.as_ref());
            let (order, child) = (!watched[0].revents().is_empty(), !watched[1].revents().is_empty());
            if child {
                waiting_signals(&signals);
                host.tell_news();
            }
            if order {
                match message::receive(host.socket.as_fd(), &mut buffer)? {
                    Received::End => return Ok(()),
                    Received::Nothing | Received::Malformed { .. } => {}
                    Received::Message(received) => match serde_json::from_slice(&received.text) {
                        Ok(Order::Spawn(order)) => host.start(&order, received.descriptors),
                        Ok(Order::Signal { job, signal }) => host.signal(job, signal),
                        Err(_) => {}
                    },
                }
            }
            host.strike();
        }
    }

    fn next_due(&self) -> Option<Instant> {
        let condemned = self.condemned.iter().map(|(_, due)| *due);
        self.jobs.values().filter_map(|job| job.due).chain(condemned).min()
    }

    fn start(&mut self, order: &ProgramOrder, descriptors: Vec<OwnedFd>) {
        let job = order.job;
        let started = Instant::now();
        match program::start(order, descriptors) {
            Ok(pid) => {
                let due = order.limit_ns.and_then(|limit| started.checked_add(Duration::from_nanos(limit)));
                self.jobs.insert(pid, Job { number: job, started, due, limit: false, stopped: None });
                tell(&self.socket, &Notice::Started { job, pid });
            }
            Err(error) => tell(&self.socket, &Notice::Refused { job, error }),
        }
    }

    fn signal(&self, job: u64, signal: i32) {
        // A job that has ended meanwhile has told so.
        if let Some(pid) = self.jobs.iter().find(|(_, candidate)| candidate.number == job).map(|(pid, _)| *pid) {
            signal_group(pid, signal);
        }
    }

    /// Sends the signals of time limits that are due.
    fn strike(&mut self) {
        let now = Instant::now();
        for (pid, job) in &mut self.jobs {
            if job.due.is_some_and(|due| due <= now) {
                signal_group(*pid, if job.limit { libc::SIGKILL } else { libc::SIGTERM });
                job.due = (!job.limit).then_some(now + GRACE);
                job.limit = true;
            }
        }
        self.condemned.retain(|(pid, due)| {
            if *due <= now {
                signal_group(*pid, libc::SIGKILL);
            }
            *due > now
        });
    }

    /// Tells of programs that were stopped, and takes leave of ended children; those that nobody started by name were
    /// adopted.
    fn tell_news(&mut self) {
        for (pid, status) in news_of_children() {
            if libc::WIFSTOPPED(status) || libc::WIFCONTINUED(status) {
                self.tell_stop(pid, libc::WIFSTOPPED(status));
                continue;
            }
            let Some(job) = self.jobs.remove(&pid) else { continue };
            if let (true, Some(due)) = (job.limit, job.due) {
                self.condemned.push((pid, due));
            }
            let elapsed_ns = u64::try_from(job.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
            let exited = libc::WIFEXITED(status);
            let outcome = Outcome {
                status: exited.then(|| libc::WEXITSTATUS(status)),
                signal: (!exited).then(|| libc::WTERMSIG(status)),
                limit: job.limit,
                elapsed_ns,
            };
            tell(&self.socket, &Notice::Ended { job: job.number, outcome });
        }
    }
}

impl Host {
    /// The program `pid` was stopped by a signal, or goes on after that.
    fn tell_stop(&mut self, pid: i32, stopped: bool) {
        let Some(job) = self.jobs.get_mut(&pid) else { return };
        if stopped {
            job.stopped.get_or_insert_with(Instant::now);
            tell(&self.socket, &Notice::Stopped { job: job.number });
        } else if let Some(since) = job.stopped.take() {
            let stopped_ns = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
            tell(&self.socket, &Notice::Continued { job: job.number, stopped_ns });
        }
    }
}

/// Sends a signal to all of a process group; a group that is gone needs none.
fn signal_group(group: i32, signal: i32) {
    // SAFETY: a plain system call; the group was led by a child of this process.
    unsafe { libc::kill(-group, signal) };
}

/// Tells the keeper of programs; when it is gone, so is the lab.
fn tell(socket: &OwnedFd, notice: &Notice) {
    if let Ok(text) = serde_json::to_vec(notice) {
        let _ = message::send(socket.as_fd(), &text, &[]);
    }
}
