//! Locks and atomics, or their model-checked twins.
//!
//! With `--cfg koboshi_loom` the concurrent parts are built on `loom`, which runs a test under every order of
//! steps that the memory model allows (`tests/loom.rs`). A name of our own, because other crates react to plain `loom`.

#[cfg(not(koboshi_loom))]
pub(crate) use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
#[cfg(not(koboshi_loom))]
pub(crate) use std::sync::{Mutex, MutexGuard};

#[cfg(koboshi_loom)]
pub(crate) use loom::sync::atomic::{AtomicI64, AtomicU64, Ordering};
#[cfg(koboshi_loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard};

/// Locks. A thread that panicked while it held the lock left plain numbers behind: they are still the best we know.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
