//! The heap of glibc gives back what a large request took only if its thresholds are fixed.
//!
//! By default it raises them to the largest block that was ever freed, up to 32 MiB. From then on such blocks are cut out of the heap, whose middle is
//! never given back. Variables that it reads at the start of a process fix them; to change them later takes unsafe code. So `serve`
//! starts itself again, once, as the same process.

/// Set by somebody: then they know better.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KNOWN: [&str; 3] = ["MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES"];

/// Blocks from 1 MiB on are the kernel's own, and so is what is free above 8 MiB at the end of a heap.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const FIXED: [(&str, &str); 2] =
    [("MALLOC_MMAP_THRESHOLD_", "1048576"), ("MALLOC_TRIM_THRESHOLD_", "8388608")];

/// Fixes the thresholds. Where that fails everything works all the same.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn fix_thresholds() {
    use std::os::unix::process::CommandExt;

    if KNOWN.iter().any(|name| std::env::var_os(name).is_some()) {
        return;
    }
    let Ok(program) = std::env::current_exe() else { return };
    let mut args = std::env::args_os();
    let mut command = std::process::Command::new(program);
    if let Some(name) = args.next() {
        command.arg0(name);
    }
    // It returns only where it fails.
    let _ = command.args(args).envs(FIXED).exec();
}

/// Other heaps give back by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) const fn fix_thresholds() {}
