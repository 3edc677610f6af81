//! One contract for all stores: the same promises, kept by memory, SQLite and Redis.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests"
)]

mod cells;
#[path = "../common/mod.rs"]
mod common;
mod expiring;
mod journal;
mod records;
mod subject;

use subject::Subject;

/// Runs each test against each store.
macro_rules! contract {
    ($($module:ident: $($name:ident),+;)+) => {
        contract!(@store memory $($module: $($name),+;)+);
        contract!(@store sqlite $($module: $($name),+;)+);
        contract!(@store redis $($module: $($name),+;)+);
    };
    (@store $store:ident $($module:ident: $($name:ident),+;)+) => {
        mod $store {
            $($(#[test] fn $name() { crate::$module::$name(&crate::Subject::$store()); })+)+
        }
    };
}

contract! {
    cells:
        store_admission,
        store_cancellation,
        store_clock_jump,
        store_edge_config;
    records:
        what_is_merged_is_loaded,
        a_merge_is_the_cores_merge,
        the_teller_learns_what_the_store_knew_beyond,
        a_cleared_cooldown_does_not_come_back_from_a_stale_copy,
        breakers_have_a_slot_per_node,
        what_is_not_shared_is_not_stored,
        a_watch_gives_all_then_changes_then_nothing,
        silent_breakers_are_forgotten_and_facts_are_not,
        any_order_of_merges_ends_the_same;
    expiring:
        a_lease_is_held_by_one,
        a_lease_ends_and_the_fence_grows,
        a_lease_is_renewed_only_by_its_holder,
        a_released_lease_is_free,
        an_answer_is_kept_for_its_time,
        the_cache_has_a_bound_and_what_ends_soonest_makes_room,
        sessions_are_kept_replaced_and_forgotten;
    journal:
        entries_come_back_as_they_were,
        entries_are_found_by_everything_they_say,
        the_newest_are_given_newest_last,
        secrets_are_taken_out_by_the_store,
        old_entries_and_too_many_are_forgotten;
}
