//! Tests the order of replies, and when a unit can follow another.

use hotrow_lane::answers::{Answers, Next};

type OfText = Answers<&'static str>;

fn answer(answers: &mut OfText, slot: u64, text: &str) -> bool {
    answers.answer(slot, |out| out.extend_from_slice(text.as_bytes()))
}

#[test]
fn answers_keep_the_order_of_their_units() {
    let mut answers = OfText::default();
    let [a, b, c] = [(); 3].map(|()| answers.reserve());
    answers.append_in_turn(|out| out.extend_from_slice(b"d"));
    assert!(!answer(&mut answers, c, "c"));
    assert!(!answer(&mut answers, b, "b"));
    assert_eq!((&answers.out[..], answers.bytes(), answers.pending()), (&b""[..], 3, 4));
    assert!(answer(&mut answers, a, "a"));
    assert_eq!((&answers.out[..], answers.pending(), answers.slots()), (&b"abcd"[..], 0, (4, None)));
    answers.append_in_turn(|out| out.extend_from_slice(b"e"));
    assert_eq!(&answers.out[..], b"abcde");
}

#[test]
fn a_notification_does_not_overtake_an_earlier_one_that_waits_for_replies() {
    let mut answers = OfText::default();
    let a = answers.reserve();
    answers.notify(false, |out| out.extend_from_slice(b"1"));
    answers.notify(true, |out| out.extend_from_slice(b"2"));
    answers.notify(false, |out| out.extend_from_slice(b"3"));
    assert!(answer(&mut answers, a, "a"));
    assert_eq!(&answers.out[..], b"1a23");
    let b = answers.reserve();
    answers.notify(false, |out| out.extend_from_slice(b"4"));
    assert!(answer(&mut answers, b, "b"));
    assert_eq!(&answers.out[..], b"1a234b");
}

#[test]
fn no_unit_follows_a_returned_one_until_no_unit_is_under_way() {
    let mut answers = OfText::default();
    assert_eq!(answers.next(), Next::First);
    let [a, b] = [(); 2].map(|()| answers.reserve());
    assert_eq!(answers.next(), Next::Follow);
    assert!(!answers.give_back(b, "b"), "the session handles the earliest unit first");
    assert_eq!((answers.next(), answers.take_returned()), (Next::Wait, None));
    assert!(answers.give_back(a, "a"));
    assert_eq!(answers.take_returned(), Some((a, "a")));
    answers.append(|out| out.extend_from_slice(b"a"));
    answers.finish_front();
    assert_eq!((answers.is_front_returned(), answers.next()), (true, Next::Wait));
    assert_eq!(answers.take_returned(), Some((b, "b")));
    assert_eq!(answers.next(), Next::Wait, "the unit is not done");
    assert!(answer(&mut answers, b, "b"), "a lane has run it again");
    assert_eq!((&answers.out[..], answers.next()), (&b"ab"[..], Next::First));
}

#[test]
fn refused_slots_are_reported_once() {
    let mut answers = OfText::default();
    let [a, b] = [(); 2].map(|()| answers.reserve());
    [b, a].into_iter().for_each(|slot| answers.refuses(slot));
    assert_eq!(answers.take_refused(b), [a]);
    assert_eq!((answers.take_refused(b), answers.take_refused(b + 1)), (vec![], vec![b]));
}
