//! A small disk of its own for a test.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A folder with a file system of its own, taken away when dropped.
pub struct Mount(pub PathBuf);

impl Mount {
    /// Room for that many pages; `None` where nothing can be mounted, which takes privileges.
    pub fn new(folder: PathBuf, pages: usize) -> Option<Self> {
        fs::create_dir(&folder).expect("a folder can be made");
        let size = format!("size={}", pages * 4096);
        let mut mount = Command::new("mount");
        let output =
            mount.args(["-t", "tmpfs", "-o", &size, "none"]).arg(&folder).output().expect("mount is there");
        if !output.status.success() {
            eprintln!("not tried, no tmpfs can be mounted: {}", String::from_utf8_lossy(&output.stderr));
            return None;
        }
        Some(Self(folder))
    }

    /// False while a file there is open for writing.
    pub fn remount(&self, how: &str) -> bool {
        let how = format!("remount,{how}");
        let mut mount = Command::new("mount");
        mount.args(["-o", &how]).arg(&self.0).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}
