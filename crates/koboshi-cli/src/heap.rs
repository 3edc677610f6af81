//! Fixes the thresholds of glibc's heap, so that it returns the memory of large requests.
//!
//! By default glibc raises them to the largest block that was ever freed, up to 32 MiB. From then on such blocks come from the heap, whose
//! middle is never returned. Variables that glibc reads at the start of a process fix them; changing them later takes unsafe code. So `serve`
//! starts itself again, once, as the same process.

/// Variables that the user may have set: then they stay.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KNOWN: [&str; 3] = ["MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES"];

/// Blocks from 1 MiB on are separate mappings, and free memory above 8 MiB at the end of a heap is returned.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const FIXED: [(&str, &str); 2] =
    [("MALLOC_MMAP_THRESHOLD_", "1048576"), ("MALLOC_TRIM_THRESHOLD_", "8388608")];

/// Fixes the thresholds. A failure is harmless.
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
    // Returns only if it fails.
    let _ = command.args(args).envs(FIXED).exec();
}

/// Other heaps return memory by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) const fn fix_thresholds() {}
