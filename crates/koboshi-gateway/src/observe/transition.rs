//! Reports changes of a breaker after the fault that caused them.
//!
//! A breaker changes while the failed attempt is being counted, before the remedy is known. A caller that counts a failure uses
//! [`hold_reports`] to hold back the reports of breakers on this thread until the fault itself is in the journal; otherwise they are
//! made at once. Nothing here waits: counting a failure is one synchronous step on one thread.

use std::cell::RefCell;

type Report = Box<dyn FnOnce()>;

thread_local! {
    /// Reports that are held back; none where they are made at once.
    static HELD: RefCell<Option<Vec<Report>>> = const { RefCell::new(None) };
}

/// Holds back the reports of breakers on this thread until it is dropped.
#[must_use]
pub(crate) struct HeldReports {
    /// An outer one already holds, and will report.
    nested: bool,
}

/// Holds reports back from now on.
pub(crate) fn hold_reports() -> HeldReports {
    HELD.with_borrow_mut(|held| {
        let nested = held.is_some();
        held.get_or_insert_default();
        HeldReports { nested }
    })
}

impl Drop for HeldReports {
    fn drop(&mut self) {
        if self.nested {
            return;
        }
        let reports = HELD.with_borrow_mut(Option::take);
        reports.into_iter().flatten().for_each(|report| report());
    }
}

/// Makes a report, now or when the holder is dropped.
pub(crate) fn report_or_hold(report: impl FnOnce() + 'static) {
    let now = HELD.with_borrow_mut(|held| match held {
        Some(held) => {
            held.push(Box::new(report));
            None
        }
        None => Some(report),
    });
    if let Some(report) = now {
        report();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    #[test]
    fn held_reports_come_last_and_in_order() {
        let order: Rc<RefCell<Vec<u8>>> = Rc::default();
        let push = |number: u8| {
            let order = Rc::clone(&order);
            move || order.borrow_mut().push(number)
        };
        report_or_hold(push(1));
        {
            let _outer = hold_reports();
            report_or_hold(push(3));
            drop(hold_reports());
            report_or_hold(push(4));
            push(2)();
        }
        report_or_hold(push(5));
        assert_eq!(*order.borrow(), [1, 2, 3, 4, 5]);
    }
}
