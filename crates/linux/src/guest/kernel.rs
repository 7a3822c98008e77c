//! The process of a guest's kernel: User Mode Linux, an ordinary program of this machine.

use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{channel, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::Pid;
use serde::{Deserialize, Serialize};
use twinnet_lab::network::NetworkSpec;

use super::wall::Wall;
use crate::service::{ErrorName, LabError};

/// The names of a guest's files in its folder. They are short, for the kernel's command line is bounded.
const CALENDAR: &str = "c";
const CARDS: &str = "s";
const INIT: &str = "i";
const NETWORK: &str = "n";
const INTERPRETER: &str = "p";
/// The longest first line of a script that a kernel reads (`BINPRM_BUF_SIZE`), with room for what else is in it.
const LONGEST_INTERPRETER: usize = 240;
/// `COMMAND_LINE_SIZE` of User Mode Linux with our patches.
const COMMAND_LINE_BYTES: usize = 16_384;
/// Bytes of the console's end that are kept, to be looked through when a kernel ends.
const CONSOLE_END: usize = 8192;
/// The words of the kernel when it ends a program because its memory is full (`oom_kill.c`).
const OUT_OF_MEMORY: &[u8] = b"Out of memory: Killed process";
/// What it says when it ends itself for lack of memory (`oom_kill.c`, `memblock.c`, `physmem.c`).
const PANICS_OF_MEMORY: [&str; 4] = [
    "System is deadlocked on memory",
    "Kernel panic - not syncing: Out of memory",
    "Failed to allocate",
    "Too few physical memory",
];
/// What removes the files of a guest whose owner is killed while they are needed: a shell that reads until the owner
/// has ended. The kernel ends at the same moment, and may have made one more.
const JANITOR: &str = r#"read -r _; rm -rf -- "$@"; sleep 1; rm -rf -- "$@""#;
/// What keeps programs from using what only some processors have. The C library looks for libraries in a folder for
/// each level of processors, which takes system calls, and so time; and it has routines for each. With this variable,
/// glibc takes each machine for one of the second level (x86-64-v2).
pub const PROCESSOR: (&str, &str) = (
    "GLIBC_TUNABLES",
    "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX2,-AVX_Fast_Unaligned_Load,-BMI2,-ERMS,-FSRM,-RTM",
);
/// What keeps the heap of the guest's first process from growing by more or fewer system calls where the strings that
/// it begins with are longer, such as the interpreter's path: it grows once, by more than most networks need, and no
/// more than the least guest has.
const FIRST_HEAP: &str =
    ":glibc.malloc.top_pad=16777216:glibc.malloc.trim_threshold=268435456:glibc.malloc.mmap_threshold=268435456";
/// The beginning of the names of folders.
const FOLDER: &str = "twinnet-guest-";

/// What the guest's first process is given.
#[derive(Debug, Serialize, Deserialize)]
pub struct Given {
    /// The network whose hosts it is to build.
    pub network: NetworkSpec,
    /// The working directory of programs that name none.
    pub folder: PathBuf,
}

/// The program that a guest is made of, and what it gets.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestSettings {
    /// The kernel: a User Mode Linux with time travel.
    pub kernel: PathBuf,
    /// The interpreter that runs the guest's first process, and the extension module that has it.
    pub python: PathBuf,
    /// As above.
    pub module: PathBuf,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// The time of day at which the lab begins, in seconds since 1970-01-01.
    pub begins_s: u64,
    /// The longest that programs may compute without virtual time going on, in seconds of processor time.
    pub patience_s: f64,
    /// The longest that the guest may have the turn without computing, in seconds of real time.
    pub silence_s: f64,
    /// The virtual time that each reading of the clock takes, in nanoseconds.
    pub clock_reading_ns: u64,
    /// The virtual time that each system call takes, in nanoseconds.
    pub system_call_ns: u64,
}

/// A kernel that runs. It ends when this is dropped, and when this process dies.
pub struct Kernel {
    /// A descriptor that becomes readable when it ends.
    pub ended: OwnedFd,
    pid: Pid,
    /// The listening sockets of the calendar and of the network cards.
    pub calendar: UnixListener,
    /// As above.
    pub cards: UnixListener,
    console: Arc<Mutex<VecDeque<u8>>>,
    files: Option<Files>,
    /// Held open as long as the kernel is to live.
    life: Option<Sender<()>>,
    keeper: Option<std::thread::JoinHandle<()>>,
}

impl Kernel {
    /// Starts the kernel for the hosts of `network`, whose network cards are `cards` in number.
    ///
    /// # Errors
    /// `GuestNotStarted`, `TooManyInterfaces`.
    pub fn start(settings: &GuestSettings, network: &NetworkSpec, cards: usize) -> Result<Self, LabError> {
        let files = Files::make(settings.memory_bytes)?;
        let mut kernel = Self::start_in(&files, settings, network, cards)?;
        kernel.files = Some(files);
        Ok(kernel)
    }

    fn start_in(
        files: &Files,
        settings: &GuestSettings,
        network: &NetworkSpec,
        cards: usize,
    ) -> Result<Self, LabError> {
        let failed = |what: &'static str| move |error: io::Error| not_started(what, &error);
        let folder = files.folder.path.as_path();
        let here = std::env::current_dir().map_err(failed("finding the working directory"))?;
        check_readable(&settings.python)?;
        let given = Given { network: network.clone(), folder: here };
        let given = serde_json::to_vec(&given).map_err(|error| not_started("writing its network", &error))?;
        fs::write(folder.join(NETWORK), given).map_err(failed("writing its network"))?;
        write_init(folder, settings).map_err(failed("writing its first program"))?;
        // The path of a socket is bounded, and that of the folder may be too long for it: its descriptor never is.
        let opened = File::open(folder).map_err(failed("opening its folder"))?;
        let listen = |name| {
            let path = format!("/proc/self/fd/{}/{name}", opened.as_raw_fd());
            UnixListener::bind(path).map_err(failed("opening its sockets"))
        };
        let (calendar, sockets) = (listen(CALENDAR)?, listen(CARDS)?);
        let (words, console) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
            .map_err(|error| not_started("opening its console", &error))?;
        let arguments = arguments(settings, network.seed, cards)?;
        let memory = files.memory.path.as_path();
        let wall = Wall::round(&[&settings.kernel], &[folder, memory]).map_err(failed("closing it in"))?;
        let mut command = Command::new(&settings.kernel);
        command.args(arguments).current_dir(folder).env_clear();
        command.env("HOME", folder).env("TMPDIR", memory).process_group(0);
        let errors = console.try_clone().map_err(failed("opening its console"))?;
        command.stdin(Stdio::null()).stdout(console).stderr(errors);
        // SAFETY: only system calls are made between fork and exec.
        unsafe { command.pre_exec(move || prepare().and_then(|()| wall.enter())) };
        let (life, dead) = channel::<()>();
        let (tell, told) = channel();
        // The kernel is told of the end of the thread that started it: this one lives as long as the lab does.
        let keep = move || match command.spawn() {
            Err(error) => drop(tell.send(Err(error))),
            Ok(mut child) => {
                // Our ends of its console.
                drop(command);
                drop(tell.send(Ok(child.id())));
                let _ = dead.recv();
                end(&mut child);
            }
        };
        let keeper = std::thread::Builder::new().name("guest".to_owned()).spawn(keep);
        let keeper = keeper.map_err(failed("starting a thread for it"))?;
        let pid = told.recv().unwrap_or_else(|_| Err(io::ErrorKind::Other.into())).map_err(|error| {
            let message = format!("{} cannot be started: {error}", settings.kernel.display());
            LabError::new(ErrorName::GuestNotStarted, message, "make one with: twinnet kernel build")
        })?;
        let pid = Pid::from_raw(pid as i32).ok_or_else(|| not_started("finding its process", &"it has no number"))?;
        let ended = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())
            .map_err(|error| not_started("watching its process", &error))?;
        let console = listen_to(words).map_err(failed("listening to its console"))?;
        Ok(Self { ended, pid, calendar, cards: sockets, console, files: None, life: Some(life), keeper: Some(keeper) })
    }

    /// Removes its files: everything is open that it needs.
    pub fn forget_files(&mut self) {
        self.files = None;
    }

    /// What the kernel and the programs in it have used of the machine so far. It is asked for seldom.
    pub fn used(&self) -> Used {
        let (mut ticks, mut pages) = (0, 0);
        for pid in self.processes() {
            let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
            // Behind the name, which may hold anything, the field 7 counts page faults without reading from a disk, and
            // user and system time are the fields 11 and 12 (proc(5), from 0).
            let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
            let numbers: Vec<u64> = fields.map(|field| field.parse().unwrap_or(0)).collect();
            pages += numbers.get(7).copied().unwrap_or(0);
            ticks += numbers.get(11..13).map_or(0, |times| times.iter().sum());
        }
        Used { processor: of_ticks(ticks), pages }
    }

    /// The kernel's process and those of the programs in it: each is asked for its children after it was given out.
    pub fn processes(&self) -> impl Iterator<Item = Pid> {
        let (mut given, mut known) = (None, vec![self.pid]);
        std::iter::from_fn(move || {
            if let Some(pid) = given.take() {
                let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
                known.extend(children.split_whitespace().filter_map(|child| Pid::from_raw(child.parse().ok()?)));
            }
            let next = known.pop()?;
            given = Some(next.as_raw_nonzero());
            Some(next)
        })
    }

    /// Returns `true` if its console told since this was last asked that it has ended a program for lack of memory.
    pub fn has_ended_a_program(&self) -> bool {
        let mut kept = self.console.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.make_contiguous().windows(OUT_OF_MEMORY.len()).any(|words| words == OUT_OF_MEMORY);
        if found {
            kept.clear();
        }
        found
    }

    /// The last lines of its console that tell of something, joined; and whether they say that its memory was full.
    pub fn last_words(&self) -> (String, bool) {
        let kept = self.console.lock().unwrap_or_else(PoisonError::into_inner);
        let text: Vec<u8> = kept.iter().copied().collect();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let of_memory = |line: &&str| PANICS_OF_MEMORY.iter().any(|words| line.contains(words));
        let panic = lines.iter().rposition(|line| line.contains("Kernel panic") || of_memory(line));
        let shown = match panic {
            Some(at) => &lines[at..=at],
            None => &lines[lines.len().saturating_sub(3)..],
        };
        (shown.join("; "), lines.iter().any(of_memory))
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        // The keeper's wait ends with the sender.
        self.life = None;
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
        // A kernel that is still starting writes there until it has ended.
        self.forget_files();
    }
}

/// What a guest has used of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Time of processors.
    pub processor: Duration,
    /// Pages of memory that it touched for the first time, each time that the machine gave it one.
    pub pages: u64,
}

/// The time of so many of the kernel's ticks, in which it counts for programs.
pub fn of_ticks(ticks: u64) -> Duration {
    // SAFETY: a plain call.
    let in_second = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).unwrap_or(100).max(1);
    Duration::from_millis(ticks * 1000 / in_second)
}

/// Runs in the new process before it becomes the kernel: it dies with its owner, and leaves no core file.
fn prepare() -> io::Result<()> {
    // SAFETY: plain system calls with valid arguments.
    unsafe {
        if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) < 0 {
            return Err(io::Error::last_os_error());
        }
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        // Signals as in a fresh process, whatever the interpreter blocks or ignores.
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
        for signal in 1..=libc::SIGRTMAX() {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
    Ok(())
}

/// Ends the kernel and all its processes.
fn end(child: &mut Child) {
    // SAFETY: a plain system call; the group was made for this child, which has not been waited for.
    unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
    let _ = child.kill();
    let _ = child.wait();
}

/// Keeps the end of what the kernel writes.
fn listen_to(words: OwnedFd) -> io::Result<Arc<Mutex<VecDeque<u8>>>> {
    let kept = Arc::new(Mutex::new(VecDeque::new()));
    let (keep, mut words) = (Arc::clone(&kept), File::from(words));
    let listen = move || {
        let mut bytes = [0; 4096];
        while let Ok(length @ 1..) = words.read(&mut bytes) {
            let mut kept: std::sync::MutexGuard<'_, VecDeque<u8>> = keep.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend(&bytes[..length]);
            let surplus = kept.len().saturating_sub(CONSOLE_END);
            kept.drain(..surplus);
        }
    };
    std::thread::Builder::new().name("guest console".to_owned()).spawn(listen)?;
    Ok(kept)
}

/// The files of a guest until it stands. They are removed when this is dropped, and soon if the owner is killed before.
struct Files {
    folder: Folder,
    /// Where its memory is made; it has no name there afterwards.
    memory: Folder,
    _janitor: Janitor,
}

/// What removes files whose owner is killed. It is ended before it does when this is dropped.
struct Janitor {
    shell: Child,
    /// The pipe that the shell reads.
    _owner: OwnedFd,
}

impl Janitor {
    fn start(paths: [&Path; 2]) -> Result<Self, LabError> {
        let (read, owner) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
            .map_err(|error| not_started("opening a pipe", &error))?;
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", JANITOR, "twinnet"]).args(paths).stdin(read);
        // What ends the owner's group is not to end it.
        shell.current_dir("/").stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let shell = shell.spawn().map_err(|error| not_started("starting what removes its files", &error))?;
        Ok(Self { shell, _owner: owner })
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

impl Files {
    fn make(memory_bytes: u64) -> Result<Self, LabError> {
        let make = |path: PathBuf| {
            Folder::make(path.clone()).map_err(|error| {
                let message = format!("the guest's kernel: making a folder for it, {}: {error}", path.display());
                LabError::new(ErrorName::GuestNotStarted, message, "make room there, or name another folder by TMPDIR")
            })
        };
        let (folder, memory) =
            (Folder::place_in(&std::env::temp_dir()), Folder::place_in(&memory_folder(memory_bytes)?));
        // Before the folders are there: the owner may be killed at any moment.
        let janitor = Janitor::start([&folder, &memory])?;
        Ok(Self { folder: make(folder)?, memory: make(memory)?, _janitor: janitor })
    }
}

/// A folder of its own that nobody else can look into; it goes when this is dropped. One whose owner was killed is
/// removed by the next: its owner's lock is gone.
struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    /// A path in `all` that nobody has, without the folders of owners that were killed.
    fn place_in(all: &Path) -> PathBuf {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        remove_orphans(all);
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = all.join(format!("{FOLDER}{}-{number}", std::process::id()));
            if !path.exists() {
                return path;
            }
        }
    }

    fn make(path: PathBuf) -> io::Result<Self> {
        let mut again = false;
        loop {
            match DirBuilder::new().mode(0o700).create(&path) {
                // Who took it for an orphan is about to remove it.
                Err(error) if again && error.kind() == io::ErrorKind::AlreadyExists => {
                    std::thread::yield_now();
                    continue;
                }
                made => made?,
            }
            again = true;
            // Another may take it for an orphan before it is locked: it is gone then, or about to go.
            let lock = match File::open(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened?,
            };
            let locked = rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive);
            if locked.is_ok() && path.exists() {
                return Ok(Self { path, _lock: lock });
            }
            locked.or_else(|error| if error == rustix::io::Errno::WOULDBLOCK { Ok(()) } else { Err(error) })?;
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes folders whose owners are gone.
fn remove_orphans(all: &Path) {
    for entry in fs::read_dir(all).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(FOLDER) {
            continue;
        }
        let Ok(folder) = File::open(entry.path()) else { continue };
        if rustix::fs::flock(&folder, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The program that the kernel starts first: the interpreter with our extension module. The kernel finds it by its own
/// working directory, so that its command line is the same wherever that is.
fn write_init(folder: &Path, settings: &GuestSettings) -> io::Result<()> {
    use std::io::Write as _;
    let quoted = |path: &Path| serde_json::to_string(&path.to_string_lossy()).unwrap_or_default();
    let (mut python, module) = (settings.python.to_string_lossy().into_owned(), quoted(&settings.module));
    if python.len() > LONGEST_INTERPRETER || python.contains(char::is_whitespace) {
        // The first line of a script has no way to write such a path.
        std::os::unix::fs::symlink(&settings.python, folder.join(INTERPRETER))?;
        python = format!("/proc/self/cwd/{INTERPRETER}");
    }
    let script = format!(
        "#!{python} -IS\nfrom importlib.machinery import ExtensionFileLoader, ModuleSpec\n\
         loader = ExtensionFileLoader('_core', {module})\n\
         core = loader.create_module(ModuleSpec('_core', loader, origin={module}))\n\
         loader.exec_module(core)\ncore.guest_main('/proc/self/cwd/{NETWORK}')\n"
    );
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o700).open(folder.join(INIT))?;
    file.write_all(script.as_bytes())
}

fn arguments(settings: &GuestSettings, seed: u64, cards: usize) -> Result<Vec<String>, LabError> {
    // Zero would mean that the machine's random numbers are used.
    let seed = twinnet_units::random::mix(seed) | 1;
    let memory = settings.memory_bytes >> 20;
    let mut arguments: Vec<String> = [
        "rootfstype=hostfs root=/dev/root ro console=tty0 con=null con0=null,fd:1 con1=null,fd:1 quiet panic=-1",
        "seccomp=on",
    ]
    .iter()
    .flat_map(|words| words.split(' '))
    .map(str::to_owned)
    .collect();
    // There is no interface that nobody made (`tunl0`, `gre0`, `dummy0`).
    arguments.push("fb_tunnels=none".to_owned());
    arguments.push("dummy.numdummies=0".to_owned());
    // What a kernel does not know goes into the environment of its first process.
    arguments.push(format!("{}={}{FIRST_HEAP}", PROCESSOR.0, PROCESSOR.1));
    arguments.push(format!("ttcost={}", settings.clock_reading_ns));
    arguments.push(format!("ttsyscall={}", settings.system_call_ns));
    arguments.push(format!("init=/proc/self/cwd/{INIT}"));
    arguments.push(format!("mem={memory}M"));
    arguments.push(format!("rngseed={seed}"));
    arguments.push(format!("time-travel=ext:1:{CALENDAR}"));
    arguments.extend((0..cards).map(|_| format!("virtio_uml.device={CARDS}:1")));
    let length: usize = arguments.iter().map(|argument| argument.len() + 1).sum();
    if length >= COMMAND_LINE_BYTES {
        let each = format!("virtio_uml.device={CARDS}:1 ").len();
        let most = cards - (length - COMMAND_LINE_BYTES).div_ceil(each) - 1;
        let message = format!("{} interfaces of real hosts on the virtual clock; {most} are possible", cards - 1);
        return Err(LabError::new(
            ErrorName::TooManyInterfaces,
            message,
            "make some hosts models: model=True (model: true)",
        ));
    }
    Ok(arguments)
}

/// A folder in memory, or else on a disk, with room for the guest's.
fn memory_folder(bytes: u64) -> Result<PathBuf, LabError> {
    let room = |folder: &Path| {
        let told = rustix::fs::statvfs(folder).ok()?;
        Some(told.f_bavail.saturating_mul(told.f_frsize))
    };
    let temporary = std::env::temp_dir();
    let candidates = [Path::new("/dev/shm"), temporary.as_path()];
    candidates
        .iter()
        .find(|folder| room(folder).is_some_and(|room| room >= bytes))
        .map(|folder| (*folder).to_owned())
        .ok_or_else(|| {
            let message = format!(
                "neither /dev/shm nor {} has room for the {} MB of the guest's memory",
                temporary.display(),
                bytes >> 20
            );
            LabError::new(ErrorName::GuestNotStarted, message, "make room there, or give the guest less memory")
        })
}

fn not_started(what: &str, error: &dyn std::fmt::Display) -> LabError {
    LabError::new(ErrorName::GuestNotStarted, format!("the guest's kernel: {what}: {error}"), "")
}

/// Refuses an interpreter that the guest, which reads files as this user, cannot start.
fn check_readable(python: &Path) -> Result<(), LabError> {
    rustix::fs::access(python, rustix::fs::Access::READ_OK | rustix::fs::Access::EXEC_OK).map_err(|error| {
        let message = format!("the guest cannot read the interpreter {}: {error}", python.display());
        LabError::new(
            ErrorName::GuestNotStarted,
            message,
            "give this user the right to read it, or take another Python",
        )
    })
}

/// Refuses a kernel that is no file that can be executed.
///
/// # Errors
/// `NoGuestKernel`.
pub fn check(kernel: &Path) -> Result<(), LabError> {
    if rustix::fs::access(kernel, rustix::fs::Access::EXEC_OK).is_err() || !kernel.is_file() {
        let message = format!("the guest's kernel {} is no program", kernel.display());
        return Err(LabError::new(ErrorName::NoGuestKernel, message, "make one with: twinnet kernel build"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Folder;

    #[test]
    fn folders_that_are_made_side_by_side_are_never_taken_for_orphans() {
        let all = std::env::temp_dir().join(format!("twinnet-folders-{}", std::process::id()));
        std::fs::create_dir(&all).expect("a folder");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let folder = Folder::make(Folder::place_in(&all)).expect("a folder of its own");
                        assert!(folder.path.is_dir());
                    }
                });
            }
        });
        assert_eq!(std::fs::read_dir(&all).expect("the folder").count(), 0);
        std::fs::remove_dir(&all).expect("it is empty");
    }
}
