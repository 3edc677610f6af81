//! The loop of a terminal: keys, readings, drawing. A thread of its own reads, because a gateway that is away takes its time to answer, and keys
//! must work meanwhile.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use koboshi_config::config::Language;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::SIGTERM;

use super::super::say::Say;
use super::board::{Board, Wish};
use super::draw::{draw, lists};
use super::read::{Reader, Snapshot};
use crate::{Failure, clock};

/// Between two readings.
const PAUSE: Duration = Duration::from_secs(2);
/// Between two looks at keys and readings: a countdown must not skip a second.
const TICK: Duration = Duration::from_millis(200);
const PAGE: isize = 10;

pub(super) fn run(reader: Reader, say: Say) -> Result<(), Failure> {
    let place = reader.place().to_owned();
    let ended = Arc::new(AtomicBool::new(false));
    // Not for SIGHUP, which ends the process by itself: then there is no terminal to put back.
    signal_hook::flag::register(SIGTERM, Arc::clone(&ended))?;
    let language = say.language();
    let ((sender, readings), (stop, stopped)) = (channel(), channel());
    thread::spawn(move || read_on(&reader, language, &sender, &stopped));
    // From here on the terminal is put back, however this ends.
    let terminal = Screen(ratatui::try_init()?);
    let watched = watch(terminal, &readings, say, &place, &ended);
    drop(stop);
    Ok(watched?)
}

/// A terminal that is as it was, once this is gone.
struct Screen(DefaultTerminal);

impl Drop for Screen {
    fn drop(&mut self) {
        // One that is gone cannot be put back.
        let _ = ratatui::try_restore();
    }
}

/// Reads until no one wants more.
fn read_on(
    reader: &Reader,
    language: Language,
    sender: &Sender<Result<Snapshot, String>>,
    stopped: &Receiver<()>,
) {
    loop {
        let read = reader.read(clock::now().timestamp());
        let read = read.map_err(|failure| failure.text(language).to_owned());
        if sender.send(read).is_err() || stopped.recv_timeout(PAUSE) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

fn watch(
    mut screen: Screen,
    readings: &Receiver<Result<Snapshot, String>>,
    mut say: Say,
    place: &str,
    ended: &AtomicBool,
) -> io::Result<()> {
    let mut board = Board::new();
    while !ended.load(Ordering::Relaxed) {
        readings.try_iter().for_each(|read| board.take(read));
        say.now = clock::now();
        let lists = lists(&board, &say);
        let lengths = lists.each_ref().map(Vec::len);
        board.settle(lengths);
        screen.0.draw(|frame| draw(frame, &board, &lists, &say, place))?;
        if is_gone()? {
            return Ok(());
        }
        while event::poll(Duration::ZERO)? {
            // A window of another size is drawn by the next turn.
            if let Some(wish) = wish(&event::read()?)
                && !board.obey(wish, lengths)
            {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Waits for a key, at most a tick; returns whether the terminal is gone. The library that reads keys would wait for one of a terminal that is
/// gone, and take all of a processor for it.
fn is_gone() -> io::Result<bool> {
    let stdin = io::stdin();
    let mut watched = [PollFd::new(&stdin, PollFlags::IN)];
    let tick = Timespec::try_from(TICK).unwrap_or_default();
    match poll(&mut watched, Some(&tick)) {
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    let is_gone =
        |fd: &PollFd<'_>| fd.revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL);
    Ok(watched.iter().any(is_gone))
}

fn wish(event: &Event) -> Option<Wish> {
    let Event::Key(key) = event else { return None };
    if key.kind == KeyEventKind::Release {
        return None;
    }
    Some(match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Wish::Quit,
        KeyCode::Char('q') | KeyCode::Esc => Wish::Quit,
        KeyCode::Tab | KeyCode::Right => Wish::Next,
        KeyCode::BackTab | KeyCode::Left => Wish::Previous,
        KeyCode::Down | KeyCode::Char('j') => Wish::Move(1),
        KeyCode::Up | KeyCode::Char('k') => Wish::Move(-1),
        KeyCode::PageDown => Wish::Move(PAGE),
        KeyCode::PageUp => Wish::Move(-PAGE),
        KeyCode::Home => Wish::First,
        KeyCode::End => Wish::Last,
        _ => return None,
    })
}
