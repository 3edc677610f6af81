//! Every HTTP status with no word to go by: the kind it is read as. Changing one is a decision, so the whole
//! list stands here.

use jiff::tz::{TimeZone, TimeZoneDatabase};
use koboshi::classify::{Answer, Classifier, Rules};
use koboshi::fault::Confidence;

const EXPECTED: &[(std::ops::RangeInclusive<u16>, &str)] = &[
    (300..=399, "response_invalid"),
    (400..=400, "invalid_request"),
    (401..=401, "unauthorized"),
    (402..=402, "quota_exceeded"),
    (403..=403, "permission_denied"),
    (404..=405, "invalid_request"),
    (406..=406, "invalid_request"),
    (407..=407, "connection_failed"),
    (408..=408, "timeout"),
    (409..=409, "unavailable"),
    (410..=410, "model_not_found"),
    (411..=412, "invalid_request"),
    (413..=413, "message_too_large"),
    (414..=422, "invalid_request"),
    (423..=423, "unavailable"),
    (424..=424, "internal"),
    (425..=425, "unavailable"),
    (426..=428, "invalid_request"),
    (429..=429, "rate_limited"),
    (430..=450, "invalid_request"),
    (451..=451, "permission_denied"),
    (452..=497, "invalid_request"),
    (498..=498, "overloaded"),
    (499..=499, "connection_closed"),
    (500..=501, "internal"),
    (502..=503, "unavailable"),
    (504..=504, "timeout"),
    (505..=519, "internal"),
    (520..=521, "unavailable"),
    (522..=522, "timeout"),
    (523..=523, "unavailable"),
    (524..=524, "timeout"),
    (525..=528, "unavailable"),
    (529..=529, "overloaded"),
    (530..=530, "unavailable"),
    (531..=599, "internal"),
];

#[test]
fn every_status_has_one_reading() {
    let classifier = Classifier::new(Rules::builtin().unwrap(), TimeZoneDatabase::bundled());
    let now = jiff::Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC);
    for status in 300..600 {
        let (_, expected) = EXPECTED.iter().find(|(range, _)| range.contains(&status)).unwrap();
        let fault = classifier.answer(&Answer { status: Some(status), ..Answer::default() }, &now).unwrap();
        assert_eq!(fault.kind.name(), *expected, "{status}");
        assert_eq!(fault.confidence, Confidence::Low, "{status}: a bare status is not much to go by");
    }
}
