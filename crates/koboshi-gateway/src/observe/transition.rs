//! Changes of a breaker are told after the fault that caused them.
//!
//! A breaker changes while the failed attempt is being counted, and only then it is known what is done about the fault. Whoever
//! counts a failure [`hold`]s what breakers have to tell on this thread until the fault itself is in the journal; everywhere else it is
//! told at once. Nothing here waits: counting a failure is one synchronous step on one thread.

use std::cell::RefCell;

type Telling = Box<dyn FnOnce()>;

thread_local! {
    /// What waits to be told; none where nobody holds it back.
    static HELD: RefCell<Option<Vec<Telling>>> = const { RefCell::new(None) };
}

/// Holds back what breakers tell on this thread until it is dropped.
#[must_use]
pub(crate) struct Held {
    /// Another one further out holds already, and tells.
    nested: bool,
}

/// Holds back from now on.
pub(crate) fn hold() -> Held {
    HELD.with_borrow_mut(|held| {
        let nested = held.is_some();
        held.get_or_insert_default();
        Held { nested }
    })
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.nested {
            return;
        }
        let tellings = HELD.with_borrow_mut(Option::take);
        tellings.into_iter().flatten().for_each(|telling| telling());
    }
}

/// Tells of a change, now or when the one who holds is done.
pub(crate) fn tell(telling: impl FnOnce() + 'static) {
    let now = HELD.with_borrow_mut(|held| match held {
        Some(held) => {
            held.push(Box::new(telling));
            None
        }
        None => Some(telling),
    });
    if let Some(telling) = now {
        telling();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    #[test]
    fn what_is_held_is_told_last_and_in_order() {
        let told: Rc<RefCell<Vec<u8>>> = Rc::default();
        let say = |number: u8| {
            let told = Rc::clone(&told);
            move || told.borrow_mut().push(number)
        };
        tell(say(1));
        {
            let _outer = hold();
            tell(say(3));
            drop(hold());
            tell(say(4));
            say(2)();
        }
        tell(say(5));
        assert_eq!(*told.borrow(), [1, 2, 3, 4, 5]);
    }
}
