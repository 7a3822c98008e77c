//! The lab protocol: every request that a lab answers, and every reply that it gives, on either clock.
//!
//! A request comes as a JSON object with `"do"` and is read once, at the door, by [`Request::read`]; from there on
//! it is a typed value. The requests stand in `request.rs`, one definition each, from which the macro of `reading.rs`
//! makes the types, their reader and the table that docs/reference/lab-protocol.md shows ([`reference`]); those that
//! change links are in `network/change.rs`, because a network's description can hold them. What several
//! of them hold is in `fields.rs`, what `start` may be told in `start_options.rs`, and what a lab answers in
//! `reply.rs`.

mod fields;
mod reading;
mod reply;
mod request;
mod start_options;

pub use crate::network::{LinkName, LinkSet, LinkSettings, LinkWay, Schedule};
pub use fields::{CaptureWay, DescribedNetwork, PeerKind, PortName, Ring};
pub use reply::*;
pub use request::*;
pub use start_options::{FabricThreads, Joining, StartOptions};

use crate::error::LabError;

/// The version of the protocol. It grows when a request or a reply changes its meaning.
pub const VERSION: u32 = 1;

/// The answer to a request.
pub type Answer = Result<Reply, LabError>;

#[cfg(test)]
mod tests {
    use serde_json::{json, Value};
    use twinnet_fabric::DirectionConfig;
    use twinnet_units::{Duration, Rate};

    use super::*;

    fn refusal(body: Value) -> (String, String) {
        let error = Request::read(body).unwrap_err();
        (error.name.to_string(), error.message)
    }

    #[test]
    fn a_request_becomes_its_type_and_keeps_its_name() {
        let read = Request::read(json!({"id": 4, "do": "app.wait", "apps": [1, 2], "until_ps": null})).unwrap();
        assert_eq!(read.name(), "app.wait");
        assert_eq!(read, Request::AppWait(Box::new(AppWait { apps: vec![1, 2], until: None })));
    }

    #[test]
    fn a_given_null_differs_from_an_absent_field_of_a_link() {
        let body = json!({"do": "link.set", "link": 0, "set": {"rate_bps": null, "delay_ps": 7}});
        let Request::LinkSet(change) = Request::read(body).unwrap() else { panic!("a link was to be set") };
        let before = DirectionConfig { rate_bps: Rate::from_bps(9), ..DirectionConfig::default() };
        let after = change.set.applied_to(&before);
        assert_eq!((after.rate_bps, after.delay_ps, after.framing), (None, Duration::from_ps(7), before.framing));
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_its_field() {
        for (body, name, words) in [
            (json!([]), "MalformedRequest", "JSON object"),
            (json!({"id": 1}), "MalformedRequest", "\"do\""),
            (json!({"do": "app.fly"}), "UnknownRequest", "\"app.fly\""),
            (json!({"do": "app.wait"}), "BadRequest", "app.wait: apps: it is needed"),
            (json!({"do": "app.wait", "apps": "all"}), "BadRequest", "app.wait: apps: invalid type"),
            (json!({"do": "now", "colour": 1}), "BadRequest", "there is no field \"colour\"; there are none"),
            (json!({"do": "app.start", "host": "h1", "app": {"kind": "fly"}}), "BadApp", "unknown variant `fly`"),
            (json!({"do": "queues.set", "port": "p", "queue": {"kind": "pile"}}), "BadQueue", "unknown variant `pile`"),
            (json!({"do": "link.set", "link": 0, "set": {"speed": 1}}), "BadLink", "unknown field `speed`"),
            (json!({"do": "link.set", "link": 0, "a": "h1", "set": {}}), "BadRequest", "a link is named by"),
            (json!({"do": "start", "network": {}, "protocol": 99}), "ProtocolMismatch", "version 99"),
            (json!({"do": "start", "network": {"colour": 1}}), "InvalidNetwork", "colour"),
            (json!({"do": "start", "network": {}, "options": {"realtime": 1}}), "InvalidOption", "\"auto\" or \"off\""),
        ] {
            let refused = refusal(body.clone());
            assert_eq!(refused.0, name, "{body}: {}", refused.1);
            assert!(refused.1.contains(words), "{}", refused.1);
        }
    }

    #[test]
    fn the_reference_names_every_request_once_with_words_for_each() {
        let reference = reference();
        let rows = reference.as_array().unwrap();
        let mut names: Vec<&str> = rows.iter().map(|row| row["do"].as_str().unwrap()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), rows.len());
        let said = |row: &Value| !row["is"].as_str().unwrap().is_empty();
        assert!(rows.iter().all(|row| said(row) && row["fields"].as_array().unwrap().iter().all(said)));
    }

    #[test]
    fn every_request_names_the_form_of_its_answer() {
        let (schemas, reference) = (Reply::schemas(), reference());
        for row in reference.as_array().unwrap() {
            let answer = row["answer"].as_str().unwrap();
            assert!(schemas["answers"][answer].is_object(), "{}: {answer}", row["do"]);
        }
        let needed = &schemas["types"]["Passed"]["required"];
        assert_eq!(*needed, json!(["now_ps", "paused", "controllers"]));
    }
}
