//! One contract for all stores: the same promises, kept by memory, SQLite and Redis.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]
#![allow(clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

mod cells;
#[path = "../common/mod.rs"]
mod common;
mod expiring;
mod journal;
mod records;
mod sessions;
mod subject;
mod usage;

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
        silent_breakers_are_forgotten_and_facts_in_use_are_not,
        spent_facts_are_forgotten_and_what_a_clear_ended_does_not_come_back,
        any_order_of_merges_ends_the_same;
    expiring:
        a_lease_is_held_by_one,
        a_lease_ends_and_the_fence_grows,
        a_lease_is_renewed_only_by_its_holder,
        a_released_lease_is_free,
        an_answer_is_kept_for_its_time,
        the_cache_has_a_bound_and_what_ends_soonest_makes_room,
        notes_are_kept_replaced_and_forgotten,
        a_note_is_changed_by_one_of_those_who_read_it;
    sessions:
        a_session_is_made_once_and_read_with_its_events,
        who_has_a_part_gets_what_comes_after_it,
        what_is_said_to_a_process_is_heard_by_it_alone,
        one_owner_writes_and_a_fence_keeps_others_out,
        a_number_that_does_not_fit_writes_nothing,
        a_session_that_is_given_back_is_taken_at_once,
        a_session_that_is_handed_over_is_found_at_once,
        a_lost_owner_is_found_and_replaced,
        a_session_that_nobody_uses_ends,
        a_forgotten_session_stays_forgotten_whoever_still_has_it,
        an_inbox_is_emptied_once_in_order,
        what_was_written_after_a_mark_is_named;
    journal:
        entries_come_back_as_they_were,
        entries_are_found_by_everything_they_say,
        the_newest_are_given_newest_last,
        secrets_are_taken_out_by_the_store,
        old_entries_and_too_many_are_forgotten;
    usage:
        usage_is_added_up_by_what_it_is_of,
        a_batch_counts_once_however_often_it_is_sent,
        what_a_key_spent_is_known_for_the_day_and_all_days,
        calls_are_counted_by_the_minute,
        old_usage_is_forgotten;
}
