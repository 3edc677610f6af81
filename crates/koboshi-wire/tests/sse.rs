//! What the framer promises, case by case; `any_bytes.rs` checks the same against a simple reading of the standard.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use bytes::Bytes;
use koboshi_wire::Malformed;
use koboshi_wire::sse::{Frame, FrameTooLong, Framer};

fn push(framer: &mut Framer, block: &[u8]) -> Vec<Frame> {
    framer.push(Bytes::copy_from_slice(block));
    std::iter::from_fn(|| framer.next_frame()).map(Result::unwrap).collect()
}

/// All frames of a stream that comes in these blocks.
fn read(blocks: &[&[u8]]) -> Vec<Frame> {
    let mut framer = Framer::new(1 << 20);
    let mut frames: Vec<Frame> = blocks.iter().flat_map(|block| push(&mut framer, block)).collect();
    frames.extend(framer.finish());
    frames
}

fn data(frames: &[Frame]) -> Vec<String> {
    frames.iter().filter_map(|frame| frame.data().unwrap()).map(String::from).collect()
}

#[test]
fn every_split_of_every_line_end_gives_the_same_data_and_the_same_bytes() {
    for end in ["\n", "\r\n", "\r"] {
        let stream = [
            "\u{feff}data: one", end, end, ": comment", end, end, "event: named", end, "data: two", end,
            "data:three", end, end, end, "data: 四", end, end, "data: last",
        ]
        .concat();
        let stream = stream.as_bytes();
        for first in 0..=stream.len() {
            for second in first..=stream.len() {
                let blocks = [&stream[..first], &stream[first..second], &stream[second..]];
                let frames = read(&blocks);
                assert_eq!(data(&frames), ["one", "two\nthree", "四", "last"], "{end:?} {first} {second}");
                assert_eq!(
                    frames.iter().map(|frame| frame.raw().to_vec()).collect::<Vec<_>>().concat(),
                    stream
                );
                assert_eq!(frames.iter().filter_map(Frame::event).collect::<Vec<_>>(), ["named"]);
            }
        }
    }
}

#[test]
fn a_frame_is_given_out_with_its_blank_line_and_not_later() {
    let mut framer = Framer::new(1024);
    assert!(push(&mut framer, b"data: a").is_empty());
    assert_eq!(framer.pending(), 7);
    assert!(push(&mut framer, b"\r").is_empty(), "the line may go on with its second half");
    assert!(push(&mut framer, b"\n").is_empty(), "that was the second half, not a blank line");
    let frames = push(&mut framer, b"\r");
    assert_eq!(data(&frames), ["a"], "the blank line is complete, whatever follows");
    assert_eq!(framer.pending(), 0);
    let late = push(&mut framer, b"\ndata: b\r\n\r\n");
    assert_eq!(late[0].raw(), &b"\n"[..], "the half that came late stands for itself");
    assert!(late[0].is_comment());
    assert_eq!(data(&late), ["b"]);
}

#[test]
fn blank_lines_are_signs_of_life_that_say_nothing() {
    let frames = read(&[b"\n", b"\r\n", b": keep-alive\n\n", b"\n"]);
    assert_eq!(frames.len(), 4);
    assert!(frames.iter().all(|frame| frame.is_comment() && frame.data() == Ok(None)));
}

#[test]
fn neighbours_can_be_passed_on_as_one_slice() {
    let mut framer = Framer::new(1024);
    assert!(push(&mut framer, b"data: a").is_empty());
    let block = b"\n\ndata: b\n\n: c\n\ndata: d";
    let frames = push(&mut framer, block);
    assert_eq!(frames[0].at(), None, "it began in the block before");
    assert_eq!((frames[1].at(), frames[2].at()), (Some(2..11), Some(11..16)));
    assert_eq!(&block[2..16], b"data: b\n\n: c\n\n");
}

#[test]
fn a_frame_within_a_block_is_not_copied() {
    let block = Bytes::from_static(b"data: a\n\ndata: b\n\n");
    let mut framer = Framer::new(1024);
    framer.push(block.clone());
    let frame = framer.next_frame().unwrap().unwrap();
    assert_eq!(frame.raw().as_ptr(), block.as_ptr());
}

#[test]
fn blocks_may_be_pushed_before_the_last_one_is_read() {
    let mut framer = Framer::new(1024);
    framer.push(Bytes::from_static(b"data: a\n\nda"));
    framer.push(Bytes::from_static(b"ta: b\n\ndata: c\n\n"));
    let frames: Vec<Frame> = std::iter::from_fn(|| framer.next_frame()).map(Result::unwrap).collect();
    assert_eq!(data(&frames), ["a", "b", "c"]);
    assert_eq!(frames[0].at(), None, "not in the block that was pushed last");
    assert_eq!(frames[2].at(), Some(7..16));
}

#[test]
fn too_long_is_said_once_and_then_nothing() {
    let mut framer = Framer::new(16);
    framer.push(Bytes::from_static(b"data: short\n\ndata: this one is longer\n\n"));
    assert!(framer.next_frame().unwrap().is_ok());
    assert_eq!(framer.next_frame(), Some(Err(FrameTooLong { max_bytes: 16 })));
    framer.push(Bytes::from_static(b"data: x\n\n"));
    assert_eq!((framer.next_frame(), framer.pending(), framer.finish()), (None, 0, None));
}

#[test]
fn an_endless_line_is_refused_before_it_is_held() {
    let mut framer = Framer::new(1000);
    for sent in (100..).step_by(100) {
        framer.push(Bytes::from(vec![b'x'; 100]));
        match framer.next_frame() {
            None => assert!(framer.pending() <= 1000),
            Some(refused) => {
                assert_eq!((refused, sent), (Err(FrameTooLong { max_bytes: 1000 }), 1100));
                break;
            }
        }
    }
}

#[test]
fn exactly_the_longest_is_allowed_whatever_its_line_end() {
    for stream in ["data: abcd\n\n", "data: abcd\r\r", "data: abc\r\n\r\n"] {
        let mut framer = Framer::new(12);
        assert_eq!(push(&mut framer, stream.as_bytes()).len(), 1, "{stream:?}");
        assert!(framer.finish().is_none());
    }
}

#[test]
fn fields_are_read_as_the_standard_says() {
    let one = |text: &str| read(&[text.as_bytes()]).remove(0);
    let said = |text: &str| one(text).data().unwrap().map(String::from);
    assert_eq!(said("data:  two spaces\n\n").as_deref(), Some(" two spaces"));
    assert_eq!(said("data\n\n").as_deref(), Some(""), "a name alone is an empty value");
    assert_eq!(said("data: a\nignored: b\ndata: c\nid: 7\n\n").as_deref(), Some("a\nc"));
    assert_eq!(said("datax: a\n\n"), None);
    assert_eq!(said("event: x\n\n"), None);
    assert_eq!(one("event: x\nevent: y\n\n").event(), Some("y"));
    assert!(!one("event: x\n\n").is_comment());
    assert_eq!(said("data: a: b\n\n").as_deref(), Some("a: b"));
    let marked = read(&["\u{feff}data: a\n\n".as_bytes(), "\u{feff}data: b\n\n".as_bytes()]);
    assert_eq!(data(&marked), ["a"], "a byte order mark counts at the start of the stream only");
}

#[test]
fn data_that_is_no_text_says_where() {
    let frame = read(&[b"data: ab\xff\n\n"]).remove(0);
    assert_eq!(frame.data(), Err(Malformed::NotUtf8 { at: 2 }));
    assert_eq!(frame.event(), None);
}

#[test]
fn a_last_frame_is_closed_with_what_its_end_lacks() {
    for end in ["", "\n", "\r\n", "\r"] {
        let mut framer = Framer::new(1024);
        framer.push(Bytes::from(format!("event: x\ndata: 1{end}")));
        assert!(framer.next_frame().is_none(), "{end:?}");
        let last = framer.finish().unwrap().closed();
        assert_eq!((last.event(), last.data().unwrap().as_deref()), (Some("x"), Some("1")), "{end:?}");
        let mut again = Framer::new(1024);
        again.push(last.raw().clone());
        assert_eq!(again.next_frame().unwrap().unwrap().data().unwrap().as_deref(), Some("1"), "{end:?}");
        assert!(again.finish().is_none(), "{end:?}: nothing is left behind its blank line");
    }
}
