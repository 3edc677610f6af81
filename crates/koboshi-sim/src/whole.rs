//! Where a body breaks that is no stream.

use crate::fall::CutPlace;

/// How many bytes of a body come before it breaks at this place. Never all of it.
pub(crate) fn broken_at(body: &str, place: CutPlace) -> usize {
    let half = body.len() / 2;
    let at = match place {
        CutPlace::Frame { bytes, .. } if bytes > 0 => usize::try_from(bytes).unwrap_or(usize::MAX),
        CutPlace::Call { .. } => in_arguments(body).unwrap_or(half),
        CutPlace::Frame { .. } | CutPlace::Half => half,
    };
    at.min(body.len().saturating_sub(1))
}

/// The middle of the first call's arguments: the text of an object, or an object.
fn in_arguments(body: &str) -> Option<usize> {
    const TEXT: &str = "\"arguments\":\"";
    const OBJECTS: [&str; 2] = ["\"input\":{", "\"args\":{"];
    if let Some(at) = body.find(TEXT) {
        let from = at + TEXT.len();
        let rest = body.get(from..)?;
        // What stands behind them, in responses and in chat.
        let ends = ["\",\"call_id\"", "\",\"name\"", "\"}"];
        return Some(from + ends.iter().find_map(|end| rest.find(end))? / 2);
    }
    OBJECTS.iter().find_map(|mark| {
        let from = body.find(mark)? + mark.len();
        Some(from + body.get(from..)?.find('}')? / 2)
    })
}
