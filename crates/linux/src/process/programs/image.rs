//! The files of a container's image in the place of the machine's, for one mount namespace.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{FileType, Mode, OFlags, StatVfsMountFlags};
use rustix::mount::{mount, mount_bind, mount_bind_recursive, mount_remount, unmount, MountFlags, UnmountFlags};
use rustix::process::{chdir, pivot_root};
use twinnet_lab::network::{ImageSpec, VolumeSpec};

use super::kernel_files;
use crate::service::{ErrorName, LabError};

const FOLDERS: [&str; 5] = ["/proc", "/sys", "/dev", "/tmp", "/run"];
/// What a mount was before has to be said again when it becomes read-only: a user may not take these away.
const KEPT: [(StatVfsMountFlags, MountFlags); 5] = [
    (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
    (StatVfsMountFlags::NODEV, MountFlags::NODEV),
    (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
    (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
    (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
];

/// Makes `image` the root of the caller's mount namespace, whose mounts must be private, and goes to the folder where
/// its programs start. What is written there is kept in memory and goes with the namespace. `scratch` is a folder of
/// the machine that may be covered for it.
///
/// # Errors
/// `HostNotReady`, with what the kernel refused.
pub fn enter(image: &ImageSpec, scratch: &Path) -> Result<(), LabError> {
    let (Some(image_root), name) = (&image.root, &image.name) else {
        let message = format!("nobody has looked for the image {:?}", image.name);
        return Err(LabError::new(
            ErrorName::HostNotReady,
            message,
            "start the network by Network.emulate or twinnet lab",
        ));
    };
    let refused = move |what: String| {
        move |error: io::Error| {
            let remedy = "see that the image and its volumes can be read; `twinnet doctor` tells what is permitted";
            LabError::new(ErrorName::HostNotReady, format!("the image {name:?}: {what}: {error}"), remedy)
        }
    };
    let root = rooted(image_root, scratch).map_err(refused("making its root".to_owned()))?;
    // Names are looked up in the image from here on, so that its links do not lead out of it. The machine's files are
    // reached by what is open.
    let open = |path: &str| {
        let opened = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        opened.map_err(|error| refused(format!("opening {path}"))(error.into()))
    };
    let devices = open("/dev")?;
    let sources: Vec<OwnedFd> = image.volumes.iter().map(|volume| open(&volume.source)).collect::<Result<_, _>>()?;
    let swap = || -> io::Result<()> {
        chdir(&root)?;
        // pivot_root(2): with "." twice the old root lies upon the new one, and is unmounted there.
        Ok(pivot_root(".", ".")?)
    };
    swap().map_err(refused("making it the root".to_owned()))?;
    furnish(&devices).map_err(refused("mounting /proc, /sys and /dev".to_owned()))?;
    for (volume, source) in image.volumes.iter().zip(&sources) {
        mount_volume(volume, source).map_err(refused(format!("mounting the volume {}", volume.target)))?;
    }
    let leave = || -> io::Result<()> {
        unmount(".", UnmountFlags::DETACH)?;
        let folder = image.folder.as_deref().filter(|folder| Path::new(folder).is_dir()).unwrap_or("/");
        Ok(chdir(folder)?)
    };
    leave().map_err(refused("leaving the machine's root".to_owned()))
}

/// Makes a root whose changes are kept in memory, upon the image that stays as it is.
fn rooted(image: &str, scratch: &Path) -> io::Result<PathBuf> {
    mount("twinnet", scratch, "tmpfs", MountFlags::empty(), Some(c"mode=0755"))?;
    let [root, upper, work] = ["root", "upper", "work"].map(|name| scratch.join(name));
    for folder in [&root, &upper, &work] {
        fs::create_dir(folder)?;
    }
    let escaped = image.replace('\\', "\\\\").replace(':', "\\:").replace(',', "\\,");
    let options = format!("lowerdir={escaped},upperdir={},workdir={}", upper.display(), work.display());
    // Without `userxattr` a user's overlay cannot mark folders that were replaced; older kernels do not know it.
    let is_overlaid = [format!("{options},userxattr"), options].into_iter().any(|options| {
        CString::new(options)
            .is_ok_and(|options| mount("overlay", &root, "overlay", MountFlags::empty(), Some(&*options)).is_ok())
    });
    if !is_overlaid && image == "/" {
        return Err(io::Error::other("this kernel lets you make no overlay, and the whole machine is not copied"));
    }
    if !is_overlaid {
        // A kernel without overlays, or one that does not let users make them.
        let copied = Command::new("cp").args(["-a", "--"]).arg(format!("{image}/.")).arg(&root).output()?;
        if !copied.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&copied.stderr).trim().to_owned()));
        }
        mount_bind(&root, &root)?;
    }
    Ok(root)
}

fn furnish(devices: &OwnedFd) -> io::Result<()> {
    for folder in FOLDERS {
        fs::create_dir_all(folder)?;
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None)?;
    mount("sysfs", "/sys", "sysfs", flags, None)?;
    kernel_files::keep_proc()?;
    kernel_files::keep_sys()?;
    Ok(mount_bind_recursive(path_of(devices), "/dev")?)
}

fn mount_volume(volume: &VolumeSpec, source: &OwnedFd) -> io::Result<()> {
    let target = Path::new(&volume.target);
    if FileType::from_raw_mode(rustix::fs::fstat(source)?.st_mode).is_dir() {
        fs::create_dir_all(target)?;
    } else if !target.exists() {
        fs::create_dir_all(target.parent().unwrap_or(target))?;
        fs::File::create(target)?;
    }
    mount_bind_recursive(path_of(source), target)?;
    if volume.read_only {
        mount_remount(target, kept_flags(target)? | MountFlags::BIND | MountFlags::RDONLY, "")?;
    }
    Ok(())
}

/// The flags of what is mounted at `target` that have to be said again.
pub(super) fn kept_flags(target: &Path) -> io::Result<MountFlags> {
    let before = rustix::fs::statvfs(target)?.f_flag;
    Ok(KEPT.iter().filter(|(flag, _)| before.contains(*flag)).map(|(_, kept)| *kept).collect())
}

/// The path by which mounts reach what is open.
pub(crate) fn path_of(open: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", open.as_raw_fd())
}
