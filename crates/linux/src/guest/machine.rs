//! The guest: a kernel with its calendar and its network cards, driven by the lab.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{epoll, Timespec};
use twinnet_lab::guest::{interfaces, Ended, Guest, News, ProgramOrder, Stream, Turn};
use twinnet_lab::network::NetworkSpec;
use twinnet_packet::{Frame, MacAddress};
use twinnet_units::Time;

use super::calendar::{self, Calendar, Given};
use super::channel::{frames, FromGuest, Incoming, Message, ToGuest};
use super::kernel::{self, GuestSettings, Kernel, Used};
use super::placement::Placement;
use super::port::{self, Port};
use super::silence::Silence;
use crate::process::programs::Notice;
use crate::service::{ErrorName, LabError};

/// The time of one wait, after which the caller may look up.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
const NO_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
/// As above, between two looks at whether the caller was interrupted while the guest boots.
const LOOK_UP: Duration = Duration::from_millis(50);
/// The longest that the guest runs by itself, in nanoseconds of virtual time: so that one that never waits is seen. It
/// is short, so that programs which compute for long and make some hundred system calls are known from those that
/// never let time go on.
const LONGEST_RUN_NS: u64 = 100_000;
/// The lab begins at a multiple of this, in nanoseconds of the guest's time. Programs take a monotonic clock below 1 s
/// for one that was not set.
const BEGINS_NS: u64 = 10_000_000_000;
/// The processor time that is left for each page of memory that is touched for the first time, so that no machine is
/// too slow for a program that fills its memory: a page takes some 0.1 ms. That is left for as many pages as the
/// guest's memory has, some times over, so that a program which touches the same pages for ever is seen.
const EACH_PAGE: Duration = Duration::from_millis(1);
/// As above.
const TIMES_OVER: u64 = 4;
/// Bytes of a page.
const PAGE_BYTES: u64 = 4096;
/// The processor time that is left to each program that runs, all of which may compute at one moment of virtual time:
/// interpreters that start together, for example.
const EACH_COMPUTES: Duration = Duration::from_millis(500);
/// The real time in which a guest that is being made has to say something.
const BOOT_PATIENCE: Duration = Duration::from_secs(60);
/// Frames of the channel that are handed over at once: the guest's card has 256 buffers.
const FRAMES_AT_ONCE: usize = 32;
/// The last words of a program that the guest has ended.
const OUT_OF_MEMORY: &str = "twinnet: the guest's memory is full, and its kernel has ended this program: give the \
    guest more (memory, --memory; guest: in study files), run less at once, and keep large files out of it (what \
    programs write stays in that memory)\n";
/// A host that ends so long after a program that the guest's kernel has ended, or earlier, ends for the same reason:
/// the kernel ends one after another until there is room.
const FULL_FOR_NS: u64 = 1_000_000_000;
/// What to do where the guest's memory is full.
const MORE_MEMORY: &str = "give the guest more memory (memory, --memory; guest: in study files), or run less in it";
/// The number of the channel's card; the hosts' interfaces follow.
const CHANNEL: usize = 0;
/// What is waited for beside the cards, which have their numbers.
const CALENDAR_TAG: u64 = u64::MAX;
const KERNEL_TAG: u64 = u64::MAX - 1;
const NEW_CALENDAR_TAG: u64 = u64::MAX - 2;
const NEW_CARD_TAG: u64 = u64::MAX - 3;

/// A guest kernel with the real hosts of a network.
pub struct Machine {
    calendar: Option<Calendar>,
    ports: Vec<Port>,
    /// Cards that have something to tell.
    stirred: BTreeSet<usize>,
    epoll: OwnedFd,
    /// There may be messages at sockets, which are to be looked at before the turn.
    messages: bool,
    /// The guest's time at the lab's time zero, in nanoseconds.
    base: u64,
    waiting: bool,
    /// It has kicked a card, and stands still.
    kicked: bool,
    /// While the guest has the turn: from when on it has to ask. While it waits: its time is not beyond this. (It tells
    /// its time only when it sends something.)
    limit: u64,
    /// The moment at which its turn began or its time last went on: by the machine's clock, and by its own.
    since: (Instant, u64),
    patience: Duration,
    /// What the guest had used when it was first looked at in this turn.
    used: Option<Used>,
    /// Pages of the guest's memory.
    pages: u64,
    /// The interfaces by their hosts, in the order of the cards behind the channel's.
    interfaces: Vec<String>,
    silence: Silence,
    incoming: Incoming,
    to_guest: VecDeque<Vec<u8>>,
    news: Vec<News>,
    ready: bool,
    /// Programs that run or are to.
    running: BTreeMap<u64, String>,
    /// When its kernel last ended a program for lack of memory, by its own clock in nanoseconds.
    full: Option<u64>,
    failure: Option<LabError>,
    placement: Placement,
    kernel: Kernel,
}

/// What comes of the guest.
enum Next {
    /// The turn.
    Turn(Given),
    /// A message, at the socket with this tag.
    Message(u64),
}

/// What was heard of the guest.
enum Heard {
    Waits,
    Sends(usize),
    Other,
    Nothing,
}

impl Machine {
    /// Starts a guest with the real hosts of `network`, and lets it run until all stand. `interrupted` is asked now and
    /// then, and `true` ends the guest.
    ///
    /// # Errors
    /// `NoGuestKernel`, `GuestNotStarted`, `GuestEnded`, `LabStopped`, or what cannot be built.
    pub fn boot(
        settings: &GuestSettings,
        network: &NetworkSpec,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<Self, LabError> {
        kernel::check(&settings.kernel)?;
        let attachments = network.attachments();
        let mut cards: VecDeque<(MacAddress, u16)> = VecDeque::from([(MacAddress([2, 0, 0, 0, 0, 0]), 1500)]);
        let mut names = Vec::new();
        for (host, port) in interfaces(network) {
            names.push(host.ports[port].name.clone());
            let mtu = attachments.get(&(host.name.as_str(), port)).map_or(1500, |line| line.mtu);
            cards.push_back((host.ports[port].mac, u16::try_from(mtu).unwrap_or(u16::MAX)));
        }
        let mut placement = Placement::new();
        // What a thread starts begins where the thread is.
        placement.join();
        let kernel = Kernel::start(settings, network, cards.len())?;
        let failed = |error: rustix::io::Errno| {
            LabError::new(ErrorName::GuestNotStarted, format!("waiting for the guest's kernel: {error}"), "")
        };
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(failed)?;
        watch(&epoll, &kernel.ended, KERNEL_TAG).map_err(failed)?;
        watch(&epoll, &kernel.calendar, NEW_CALENDAR_TAG).map_err(failed)?;
        watch(&epoll, &kernel.cards, NEW_CARD_TAG).map_err(failed)?;
        let mut machine = Self {
            calendar: None,
            ports: Vec::with_capacity(cards.len()),
            stirred: BTreeSet::new(),
            epoll,
            messages: false,
            base: 0,
            waiting: false,
            kicked: false,
            limit: 1,
            since: (Instant::now(), 0),
            patience: Duration::try_from_secs_f64(settings.patience_s).unwrap_or(Duration::MAX),
            used: None,
            pages: settings.memory_bytes / PAGE_BYTES,
            interfaces: names,
            silence: Silence::new(Duration::try_from_secs_f64(settings.silence_s).unwrap_or(Duration::MAX)),
            incoming: Incoming::default(),
            to_guest: VecDeque::new(),
            news: Vec::new(),
            ready: false,
            running: BTreeMap::new(),
            full: None,
            failure: None,
            placement,
            kernel,
        };
        machine.set_up(&mut cards, settings, interrupted)?;
        machine.placement.leave();
        machine.kernel.forget_files();
        Ok(machine)
    }

    /// Lets the guest run until its hosts stand, and on to the moment at which the lab begins.
    fn set_up(
        &mut self,
        cards: &mut VecDeque<(MacAddress, u16)>,
        settings: &GuestSettings,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<(), LabError> {
        let mut looked = Instant::now();
        loop {
            if looked.elapsed() >= LOOK_UP {
                looked = Instant::now();
                if interrupted() {
                    return Err(LabError::new(ErrorName::LabStopped, "the guest was not to start any more", ""));
                }
            }
            match self.hear(cards, settings)? {
                Heard::Sends(card) => {
                    // What interfaces send while they are set up is no part of the lab.
                    while self.pulled(card).is_some() {}
                    self.calendar()?.give();
                }
                Heard::Other => {}
                Heard::Nothing => self.check_patience()?,
                Heard::Waits => {
                    self.tell(self.limit)?;
                    let wanted = self.calendar()?.request();
                    if self.ready && self.base == 0 {
                        self.base = self.limit.next_multiple_of(BEGINS_NS).max(BEGINS_NS);
                    }
                    match wanted {
                        Some(at) if self.base == 0 => self.run(at, at + LONGEST_RUN_NS)?,
                        Some(at) if at <= self.base => self.run(at, self.base)?,
                        _ if self.base != 0 => break,
                        _ => return Err(self.fail("it waits for ever before its hosts stand")),
                    }
                }
            }
        }
        Ok(())
    }

    fn calendar(&mut self) -> Result<&Calendar, LabError> {
        if self.calendar.is_none() {
            return Err(self.fail("it has no calendar"));
        }
        self.calendar.as_ref().ok_or_else(|| LabError::new(ErrorName::GuestEnded, "the guest has no calendar", ""))
    }

    /// Gives the guest, which waits, the turn.
    fn run(&mut self, at: u64, until: u64) -> Result<(), LabError> {
        self.waiting = false;
        self.goes_on(at);
        self.limit = until.min(at + LONGEST_RUN_NS);
        let limit = self.limit;
        self.calendar()?.run(at, limit);
        Ok(())
    }

    /// The guest, which has the turn, is to ask from `until` on.
    fn hold_back(&mut self, until: u64) -> Result<(), LabError> {
        self.limit = self.limit.min(until);
        self.calendar()?.hold_back(until);
        Ok(())
    }

    /// Waits a moment for the guest to say something.
    fn hear(&mut self, cards: &mut VecDeque<(MacAddress, u16)>, settings: &GuestSettings) -> Result<Heard, LabError> {
        let said = match self.next()? {
            Some(Next::Message(NEW_CALENDAR_TAG)) => {
                let begins = settings.begins_s.saturating_mul(1_000_000_000).saturating_sub(BEGINS_NS);
                let accepted = self.kernel.calendar.accept().and_then(|(socket, _)| {
                    let calendar = Calendar::new(socket.into(), begins)?;
                    watch(&self.epoll, calendar.socket(), CALENDAR_TAG)?;
                    Ok(calendar)
                });
                self.calendar = Some(accepted.map_err(|error| self.broke(&error))?);
                return Ok(Heard::Other);
            }
            Some(Next::Message(NEW_CARD_TAG)) => {
                let (mac, mtu) = cards.pop_front().ok_or_else(|| self.fail("it has too many cards"))?;
                let number = self.ports.len() as u64;
                let accepted = self.kernel.cards.accept().and_then(|(socket, _)| {
                    let port = Port::new(socket.into(), mac, mtu);
                    watch(&self.epoll, port.socket(), number)?;
                    Ok(port)
                });
                let port = accepted.map_err(|error| self.broke(&error))?;
                self.ports.push(port);
                return Ok(Heard::Other);
            }
            said => said,
        };
        self.heard(said)
    }

    /// Waits a moment for the guest to give its turn away, or for a message of it; `None` if nothing comes.
    fn next(&mut self) -> Result<Option<Next>, LabError> {
        let mut in_vain = false;
        loop {
            let sharing = self.calendar.as_ref().filter(|calendar| calendar.has_started());
            if let (Some(calendar), false) = (sharing, self.messages) {
                match calendar.turn(&LOOK) {
                    Ok(Some(Given::Says)) => {}
                    Ok(Some(given)) => return Ok(Some(Next::Turn(given))),
                    Ok(None) => in_vain = true,
                    Err(error) => return Err(self.broke(&error)),
                }
                self.messages = true;
            }
            let wait = if self.messages { &NO_WAIT } else { &LOOK };
            let none = epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) };
            let mut events = [none; 1];
            match epoll::wait(&self.epoll, &mut events, Some(wait)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(Some(Next::Message(events[0].data.u64()))),
                Err(error) => return Err(self.broke(&error.into())),
            }
            if !std::mem::take(&mut self.messages) || in_vain {
                return Ok(None);
            }
        }
    }

    fn heard(&mut self, next: Option<Next>) -> Result<Heard, LabError> {
        match next {
            None => Ok(Heard::Nothing),
            Some(Next::Turn(Given::Waits)) => {
                self.waiting = true;
                let request = self.calendar()?.request();
                self.limit = request.map_or(self.limit, |request| request.min(self.limit));
                Ok(Heard::Waits)
            }
            Some(Next::Turn(Given::Kicks { card: CHANNEL, queue: port::TRANSMIT })) => {
                self.listen()?;
                // The lab's owner is to be told at this moment, and not at a later one.
                let now = self.calendar()?.now();
                self.hold_back(now + 1)?;
                self.calendar()?.give();
                Ok(Heard::Other)
            }
            Some(Next::Turn(Given::Kicks { card, queue: port::TRANSMIT })) if card < self.ports.len() => {
                Ok(Heard::Sends(card))
            }
            Some(Next::Turn(_)) => {
                self.calendar()?.give();
                Ok(Heard::Other)
            }
            Some(Next::Message(CALENDAR_TAG)) => {
                let said = self.calendar()?.hear();
                match said.map_err(|error| self.broke(&error))? {
                    calendar::Said::Answered => Ok(Heard::Other),
                    calendar::Said::Gone => Err(self.fail("")),
                }
            }
            Some(Next::Message(card)) if (card as usize) < self.ports.len() => {
                let said = self.ports[card as usize].hear();
                match said.map_err(|error| self.broke(&error))? {
                    port::Said::Answered => Ok(Heard::Other),
                    port::Said::Gone => Err(self.fail("")),
                }
            }
            Some(Next::Message(_)) => Err(self.fail("")),
        }
    }

    /// Takes in what the guest's first process says.
    fn listen(&mut self) -> Result<(), LabError> {
        while let Some(frame) = self.pulled(CHANNEL) {
            self.incoming.take_in(&frame.bytes);
        }
        loop {
            match self.incoming.next() {
                Ok(None) => return Ok(()),
                Err(why) => return Err(self.fail(why)),
                Ok(Some(Message::Bytes { job, stream, bytes })) => {
                    let stream = if stream == 2 { Stream::Error } else { Stream::Out };
                    if !bytes.is_empty() {
                        self.news.push(News::Wrote { job, stream, bytes });
                    }
                }
                Ok(Some(Message::Said(FromGuest::Ready))) => self.ready = true,
                Ok(Some(Message::Said(FromGuest::Failed(error)))) => {
                    self.failure = Some(error.clone());
                    return Err(error);
                }
                Ok(Some(Message::Said(FromGuest::Program(notice)))) => self.note(notice),
            }
        }
    }

    fn note(&mut self, notice: Notice) {
        match notice {
            Notice::Started { job, pid } => self.news.push(News::Started { job, pid }),
            Notice::Refused { job, mut error } => {
                self.running.remove(&job);
                if error.name == ErrorName::HostEnded && self.is_full() {
                    error.message.push_str(": the guest's memory is full");
                    MORE_MEMORY.clone_into(&mut error.remedy);
                }
                self.news.push(News::Refused { job, error });
            }
            Notice::Ended { job, outcome } => {
                self.running.remove(&job);
                let crate::process::programs::Outcome { status, signal, limit, elapsed_ns } = outcome;
                let killed = signal == Some(libc::SIGKILL) || status == Some(128 + libc::SIGKILL);
                if killed && self.kernel.has_ended_a_program() {
                    self.full = Some(self.since.1);
                    let bytes = OUT_OF_MEMORY.as_bytes().to_vec();
                    self.news.push(News::Wrote { job, stream: Stream::Error, bytes });
                }
                self.news.push(News::Ended { job, how: Ended { status, signal, limit, elapsed_ns } });
            }
            Notice::Failed { .. } | Notice::Stopped { .. } | Notice::Continued { .. } => {}
        }
    }

    /// Whether the guest's kernel ends what runs because its memory is full: it has just said so of something, or has
    /// ended a program a moment ago.
    fn is_full(&mut self) -> bool {
        if self.kernel.has_ended_a_program() {
            self.full = Some(self.since.1);
        }
        self.full.is_some_and(|then| self.since.1 <= then + FULL_FOR_NS)
    }

    fn pulled(&mut self, card: usize) -> Option<Box<Frame>> {
        let frame = self.ports[card].pull();
        self.stirred.insert(card);
        match frame {
            Ok(frame) => frame,
            Err(error) => {
                self.broke(&error);
                None
            }
        }
    }

    /// Hands over some of what waits for the guest's first process.
    fn hand_over(&mut self) -> io::Result<()> {
        for _ in 0..FRAMES_AT_ONCE {
            let Some(bytes) = self.to_guest.pop_front() else { return Ok(()) };
            self.ports[CHANNEL].deliver(&Frame::new(bytes))?;
            self.stirred.insert(CHANNEL);
        }
        Ok(())
    }

    /// Tells the guest, which waits, at `now` of what was done: it is to run at once, and hears of it then.
    fn tell(&mut self, now: u64) -> Result<(), LabError> {
        let Some(calendar) = &self.calendar else { return Ok(()) };
        calendar.set(now);
        self.silence.ends();
        for card in std::mem::take(&mut self.stirred) {
            let calls = match self.ports[card].calls() {
                Ok(calls) => calls,
                Err(error) => return Err(self.broke(&error)),
            };
            if let (true, Some(calendar)) = (calls != 0, &self.calendar) {
                calendar.call(card, calls);
                calendar.ask(now);
            }
        }
        Ok(())
    }

    /// The guest's time goes on.
    fn goes_on(&mut self, now: u64) {
        self.since = (Instant::now(), now);
        self.used = None;
        self.silence.ends();
    }

    /// Fails when the guest has had the turn for too long: by the time that it computed, so that one which gets no
    /// processor is waited for.
    fn check_patience(&mut self) -> Result<(), LabError> {
        if self.base == 0 || !self.ready {
            return self.check_boot();
        }
        let now = self.kernel.used();
        if self.silence.is_over(now.processor) {
            let error = self.silence.error();
            return Err(self.ends_with(error));
        }
        let before = *self.used.get_or_insert(now);
        let programs = u32::try_from(self.running.len()).unwrap_or(u32::MAX);
        let pages = now.pages.saturating_sub(before.pages).min(self.pages.saturating_mul(TIMES_OVER));
        let of_pages = EACH_PAGE.saturating_mul(u32::try_from(pages).unwrap_or(u32::MAX));
        let patience = self.patience.max(EACH_COMPUTES.saturating_mul(programs)).saturating_add(of_pages);
        let computed = now.processor.saturating_sub(before.processor);
        if computed < patience {
            return Ok(());
        }
        let at = Time::from_ps((self.since.1 - self.base) * 1000).as_secs_f64();
        let message = format!(
            "{} computes without end: time stands at {at:.6} s for {:.1} s of a processor",
            self.who_computes(),
            computed.as_secs_f64(),
        );
        let remedy = "on the virtual clock computing takes no time, so a program that waits must sleep or wait for \
                      something: look for one that asks again and again; for one that has much to compute, raise \
                      patience (--patience; guest: in study files), or use the wall clock";
        Err(self.ends_with(LabError::new(ErrorName::ProgramSpins, message, remedy)))
    }

    /// Fails when the guest, which is being made, has said nothing for too long.
    fn check_boot(&mut self) -> Result<(), LabError> {
        if self.since.0.elapsed() < BOOT_PATIENCE {
            return Ok(());
        }
        let awaited = if self.calendar.is_none() {
            "ask for its calendar".to_owned()
        } else if self.ports.len() <= self.interfaces.len() {
            format!("ask for its network cards: {} of {} are there", self.ports.len(), self.interfaces.len() + 1)
        } else {
            "build its hosts".to_owned()
        };
        let why = format!("in {} s of real time it did not {awaited}", BOOT_PATIENCE.as_secs());
        Err(self.fail(&why))
    }

    /// The program that has the guest's processor: as it was started, or by its own name and its host's.
    fn who_computes(&self) -> String {
        let computing = self.calendar.as_ref().and_then(Calendar::computing);
        let Some((host, name)) = computing else {
            // Those that began last come first: one of them it is most often.
            let programs: Vec<&str> = self.running.values().rev().map(String::as_str).take(8).collect();
            return format!("a program (of {})", programs.join(", "));
        };
        let started = self.running.values().rev().find(|program| {
            let mut words = program.strip_prefix(&format!("{host}: ")).unwrap_or("").split(' ');
            let file = words.next().and_then(|path| path.rsplit('/').next()).unwrap_or("");
            // A name is kept to 15 bytes (`TASK_COMM_LEN`).
            file.as_bytes().starts_with(name.as_bytes()) && (file.len() == name.len() || name.len() == 15)
        });
        started.cloned().unwrap_or_else(|| format!("{host}: {name}"))
    }

    /// The guest cannot be used any more: all that follows gets this answer.
    fn ends_with(&mut self, error: LabError) -> LabError {
        self.failure.get_or_insert(error).clone()
    }

    fn broke(&mut self, error: &io::Error) -> LabError {
        self.fail(&error.to_string())
    }

    /// The guest is gone, or has to be: all that follows gets the same answer.
    fn fail(&mut self, why: &str) -> LabError {
        if let Some(error) = &self.failure {
            return error.clone();
        }
        let (words, of_memory) = self.kernel.last_words();
        let parts: Vec<&str> = [why, words.as_str()].into_iter().filter(|part| !part.is_empty()).collect();
        let remedy = if of_memory { MORE_MEMORY } else { "" };
        let message = format!("the guest's kernel has ended: {}", parts.join(": "));
        self.ends_with(LabError::new(ErrorName::GuestEnded, message, remedy))
    }

    fn alive(&self) -> Result<(), LabError> {
        self.failure.clone().map_or(Ok(()), Err)
    }

    /// The guest's time at the end of the nanosecond of the lab's `at`.
    fn guest_time(&self, at: Time) -> u64 {
        self.base + at.as_ps().div_ceil(1000)
    }

    fn lab_time(&self, ns: u64) -> Time {
        Time::from_ps(ns.saturating_sub(self.base).saturating_mul(1000))
    }
}

impl Guest for Machine {
    fn wants(&self) -> Option<Time> {
        if self.failure.is_some() {
            // The next turn tells it.
            return Some(Time::ZERO);
        }
        let request = self.calendar.as_ref().filter(|_| self.waiting)?.request()?;
        Some(self.lab_time(request))
    }

    fn reached(&self) -> Time {
        self.lab_time(self.limit)
    }

    fn begins(&mut self) {
        self.placement.join();
        if self.placement.is_due() {
            self.placement.look(self.kernel.used().processor, self.kernel.processes());
        }
    }

    fn rests(&mut self) {
        self.placement.leave();
    }

    fn resume(&mut self, at: Time, until: Time) -> Result<Turn, LabError> {
        self.alive()?;
        let until = self.guest_time(until);
        if self.waiting {
            let at = self.guest_time(at);
            self.run(at, until)?;
        } else {
            self.hold_back(until)?;
            if std::mem::take(&mut self.kicked) {
                self.calendar()?.give();
            }
        }
        loop {
            let next = self.next()?;
            match self.heard(next)? {
                Heard::Nothing => {
                    self.check_patience()?;
                    return Ok(Turn::Goes);
                }
                Heard::Other => {}
                Heard::Sends(card) => {
                    self.kicked = true;
                    let now = self.calendar()?.now();
                    if now > self.since.1 {
                        self.goes_on(now);
                    }
                    return Ok(Turn::Sends { port: card - 1, at: self.lab_time(now) });
                }
                Heard::Waits if self.to_guest.is_empty() => return Ok(Turn::Waits),
                Heard::Waits => {
                    self.hand_over().map_err(|error| self.broke(&error))?;
                    self.tell(self.limit)?;
                    return Ok(Turn::Waits);
                }
            }
        }
    }

    fn settle(&mut self, at: Time) -> Result<(), LabError> {
        self.alive()?;
        let now = self.guest_time(at).max(self.limit);
        self.hand_over().map_err(|error| self.broke(&error))?;
        self.tell(now)
    }

    fn deliver(&mut self, port: usize, frame: Box<Frame>) {
        let delivered = self.ports[port + 1].deliver(&frame);
        self.stirred.insert(port + 1);
        if let Err(error) = delivered {
            self.broke(&error);
        }
    }

    fn pull(&mut self, port: usize) -> Option<Box<Frame>> {
        self.pulled(port + 1)
    }

    fn carrier(&mut self, port: usize, up: bool) {
        self.stirred.insert(port + 1);
        if let Err(error) = self.ports[port + 1].carrier(up) {
            self.broke(&error);
        }
    }

    fn order(&mut self, order: ProgramOrder) {
        let message: Message<ToGuest> = match order {
            ProgramOrder::Feed { job, bytes } if bytes.is_empty() => {
                return tracing::debug!(job, "nothing was fed");
            }
            ProgramOrder::Feed { job, bytes } => Message::Bytes { job, stream: 0, bytes },
            ProgramOrder::Close { job } => Message::Bytes { job, stream: 0, bytes: Vec::new() },
            order => {
                if let ProgramOrder::Start(program) = &order {
                    self.running.insert(program.job, format!("{}: {}", program.host, program.argv.join(" ")));
                }
                Message::Said(order)
            }
        };
        self.to_guest.extend(frames(&message.to_bytes()));
    }

    fn take_news(&mut self) -> Vec<News> {
        std::mem::take(&mut self.news)
    }

    fn has_news(&self) -> bool {
        !self.news.is_empty()
    }
}

fn watch(epoll: &OwnedFd, descriptor: impl AsFd, tag: u64) -> rustix::io::Result<()> {
    epoll::add(epoll, descriptor, epoll::EventData::new_u64(tag), epoll::EventFlags::IN)
}
