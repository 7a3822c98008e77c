//! The contents that a description and a report can have, told by the types that read and write them: kinds, fields,
//! types, units, defaults and ranges.
//!
//! Other languages hold their own definitions against this. The types' JSON schemas (`schemars`) have the facts; here
//! they are put into one flat form. Tests ask the types themselves whether the ranges are true.

use schemars::SchemaGenerator;
use serde_json::{json, Map, Value};
use twinnet_apps::{AppConfig, AppReport};
use twinnet_queue::QueueConfig;

use crate::network::{HostSpec, LinkSpec, SwitchSpec};
use crate::tunnel_end::TunnelEndSpec;

/// Types that choose among kinds by one word: the type, its group.
const CHOICES: [(&str, &str); 7] = [
    ("AppConfig", "traffic"),
    ("Method", "estimator"),
    ("QueueConfig", "queue"),
    ("Distribution", "distribution"),
    ("JitterConfig", "jitter"),
    ("LossConfig", "loss"),
    ("TunnelConfig", "tunnel"),
];

/// Types with one form: the type, its group, and its kind there.
const RECORDS: [(&str, &str, &str); 52] = [
    ("DrrClassConfig", "queue_class", "drr"),
    ("HtbQueueConfig", "queue_class", "htb"),
    ("CbqClassConfig", "queue_class", "cbq"),
    ("ClassifyRule", "queue_class", "classify"),
    ("HeaderMatch", "queue_class", "header"),
    ("OnOff", "traffic_part", "on_off"),
    ("VideoModel", "traffic_part", "video_model"),
    ("ToldFlow", "traffic_part", "told_flow"),
    ("LinkSpec", "link", "link"),
    ("EndSpec", "link", "end"),
    ("DirectionSpec", "link", "direction"),
    ("TunnelEndSpec", "tunnel", "end"),
    ("TunnelPortSpec", "tunnel", "port"),
    ("HostSpec", "host", "host"),
    ("HostPortSpec", "host", "port"),
    ("RouteConfig", "host", "route"),
    ("ProcessingConfig", "host", "processing"),
    ("Coalescing", "host", "coalescing"),
    ("ImageSpec", "host", "image"),
    ("VolumeSpec", "host", "volume"),
    ("LimitsSpec", "host", "limits"),
    ("SwitchSpec", "switch", "switch"),
    ("SwitchPortSpec", "switch", "port"),
    ("PortVlans", "switch", "vlans"),
    ("Mirror", "switch", "mirror"),
    ("MirrorTo", "switch", "mirror_to"),
    ("TlsSpec", "switch", "tls"),
    ("AppReport", "report", "app"),
    ("FlowReport", "report", "flow"),
    ("SummaryReport", "report", "summary"),
    ("SignedReport", "report", "spread"),
    ("LengthsReport", "report", "lengths"),
    ("DensityReport", "report", "reordering_density"),
    ("Samples", "report", "samples"),
    ("PacingReport", "report", "pacing"),
    ("IntervalsReport", "report", "intervals"),
    ("IntervalTimesReport", "report", "interval_times"),
    ("CarriedReport", "report", "carried"),
    ("IntervalOrdersReport", "report", "interval_orders"),
    ("IntervalRoundTripsReport", "report", "interval_round_trips"),
    ("TcpInfoReport", "report", "tcp_info"),
    ("RtpReport", "report", "rtp"),
    ("FramesReport", "report", "frames"),
    ("VideoReport", "report", "video"),
    ("PlayedAt", "report", "played_at"),
    ("ClockReport", "report", "clock"),
    ("BandwidthReport", "report", "bandwidth"),
    ("TrainRates", "report", "train_rates"),
    ("Train", "report", "train"),
    ("HopFinding", "report", "hop"),
    ("Plan", "report", "plan"),
    ("Planned", "report", "planned"),
];

/// Units by the endings of names.
const UNITS: [(&str, &str); 9] = [
    ("_ps", "ps"),
    ("_ns", "ns"),
    ("_bps", "bit/s"),
    ("_bytes", "B"),
    ("bytes", "B"),
    ("payload", "B"),
    ("mtu", "B"),
    ("_hz", "Hz"),
    ("_per_second", "1/s"),
];

/// Returns what a description or a report can hold: `{group: {kind: {field: {...}}}}`.
///
/// Of a field: `type`, `required` and, where they apply, `unit`, `default`, `nullable`, `minimum`, `maximum`,
/// `exclusive_minimum`, `or_zero`, `values`, `items`, `least_items`, `most_items`, `of` and `description`.
#[must_use]
pub fn vocabulary() -> Value {
    let definitions = definitions();
    let mut groups = Map::new();
    let mut put = |group: &str, kind: &str, fields: Map<String, Value>| {
        let entry = groups.entry(group).or_insert_with(|| json!({}));
        entry[kind] = fields.into();
    };
    for (name, group) in CHOICES {
        let schema = &definitions[name];
        for variant in list(&schema["oneOf"]) {
            if let Some(kind) = kind(variant) {
                let mut fields = Map::new();
                add_fields(&definitions, variant, &mut fields);
                // What stands beside all kinds, such as the bounds of a distribution.
                add_own_fields(&definitions, schema, &mut fields);
                put(group, kind, fields);
            }
        }
    }
    for (name, group, kind) in RECORDS {
        let mut fields = Map::new();
        add_fields(&definitions, &definitions[name], &mut fields);
        put(group, kind, fields);
    }
    groups.into()
}

/// The schemas of all types of a description, by name.
fn definitions() -> Map<String, Value> {
    let mut generator = SchemaGenerator::default();
    generator.subschema_for::<AppConfig>();
    generator.subschema_for::<QueueConfig>();
    generator.subschema_for::<HostSpec>();
    generator.subschema_for::<LinkSpec>();
    generator.subschema_for::<SwitchSpec>();
    generator.subschema_for::<TunnelEndSpec>();
    generator.subschema_for::<AppReport>();
    generator.take_definitions(true)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The word that chooses `variant`: its one property that is a constant.
fn kind(variant: &Value) -> Option<&str> {
    variant["properties"].as_object()?.values().find_map(|property| property["const"].as_str())
}

/// The definition that a schema refers to, with its name.
fn referred<'a>(definitions: &'a Map<String, Value>, schema: &'a Value) -> Option<(&'a str, &'a Value)> {
    let name = schema["$ref"].as_str()?.rsplit('/').next()?;
    Some((name, definitions.get(name)?))
}

/// Adds what `schema` has and what it refers to.
fn add_fields(definitions: &Map<String, Value>, schema: &Value, fields: &mut Map<String, Value>) {
    add_own_fields(definitions, schema, fields);
    if let Some((_, whole)) = referred(definitions, schema) {
        add_fields(definitions, whole, fields);
    }
}

fn add_own_fields(definitions: &Map<String, Value>, schema: &Value, fields: &mut Map<String, Value>) {
    let required = list(&schema["required"]);
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if property["const"].is_null() {
            let mut field = shape(definitions, property);
            field.insert("required".into(), required.iter().any(|one| one == name).into());
            if let Some((_, unit)) = UNITS.iter().find(|(ending, _)| name.ends_with(ending)) {
                field.insert("unit".into(), (*unit).into());
            }
            fields.insert(name.clone(), field.into());
        }
    }
}

/// Type, range and the like of a value.
fn shape(definitions: &Map<String, Value>, schema: &Value) -> Map<String, Value> {
    let mut told = Map::new();
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        several => list(several).iter().filter_map(Value::as_str).collect(),
    };
    if let Some(kind) = types.iter().find(|kind| **kind != "null") {
        told.insert("type".into(), (*kind).into());
    }
    let mut nullable = types.contains(&"null");
    if let Some((name, whole)) = referred(definitions, schema) {
        told.extend(definition(definitions, name, whole));
    }
    for part in list(&schema["anyOf"]).iter().chain(list(&schema["allOf"])) {
        if part["type"] == "null" {
            nullable = true;
        } else {
            told.extend(shape(definitions, part));
        }
    }
    if nullable {
        told.insert("nullable".into(), true.into());
    }
    for (from, to) in [
        ("default", "default"),
        ("minimum", "minimum"),
        ("maximum", "maximum"),
        ("exclusiveMinimum", "exclusive_minimum"),
        ("or_zero", "or_zero"),
        ("minItems", "least_items"),
        ("maxItems", "most_items"),
        ("description", "description"),
    ] {
        if let Some(fact) = schema.get(from).filter(|fact| !fact.is_null()) {
            told.insert(to.into(), fact.clone());
        }
    }
    for items in [&schema["items"], &schema["additionalProperties"]] {
        if items.is_object() {
            told.insert("items".into(), shape(definitions, items).into());
        }
    }
    told
}

/// A value of a type with a name: one of ours, a word out of a list, or a number with a range.
fn definition(definitions: &Map<String, Value>, name: &str, whole: &Value) -> Map<String, Value> {
    let words = || list(&whole["oneOf"]).iter().map(|one| one["const"].clone()).chain(list(&whole["enum"]).to_vec());
    let of = CHOICES
        .iter()
        .find_map(|(one, group)| (*one == name).then(|| (*group).to_owned()))
        .or_else(|| RECORDS.iter().find_map(|(one, group, kind)| (*one == name).then(|| format!("{group}.{kind}"))));
    let mut told = match of {
        Some(of) => Map::from_iter([("type".into(), "object".into()), ("of".into(), of.into())]),
        None if words().next().is_some_and(|word| word.is_string()) => {
            Map::from_iter([("type".into(), "string".into()), ("values".into(), words().collect())])
        }
        None => shape(definitions, whole),
    };
    // The field says what it is for; what the type is in general stands with its kind.
    told.remove("description");
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_that_is_named_here_is_told() {
        let told = vocabulary();
        for (name, group) in CHOICES {
            assert!(told[group].as_object().is_some_and(|kinds| !kinds.is_empty()), "{name}");
        }
        for (name, group, kind) in RECORDS {
            assert!(told[group][kind].as_object().is_some_and(|fields| !fields.is_empty()), "{name}");
        }
    }

    #[test]
    fn a_field_is_told_with_type_unit_default_and_range() {
        let told = vocabulary();
        let rate = &told["traffic"]["udp_source"]["rate_bps"];
        assert_eq!(rate["type"], "integer");
        assert_eq!(rate["unit"], "bit/s");
        assert_eq!((&rate["minimum"], &rate["maximum"]), (&json!(1), &json!(1_000_000_000_000_u64)));
        assert_eq!(rate["nullable"], true);
        assert_eq!(rate["required"], false);
        assert_eq!(told["traffic"]["udp_source"]["gap_ps"]["of"], "distribution");
        assert_eq!(told["traffic"]["udp_source"]["process"]["values"], json!(["constant", "poisson"]));
        assert_eq!(told["queue"]["htb"]["queues"]["items"]["of"], "queue_class.htb");
        assert_eq!(told["queue"]["codel"]["target_ps"]["default"], 5_000_000_000_u64);
        assert_eq!(told["link"]["direction"]["framing"]["values"], json!(["ethernet", "hdlc", "none"]));
        assert_eq!(told["distribution"]["pareto"]["least"]["required"], false);
    }

    #[test]
    fn every_field_has_a_type() {
        for (group, kinds) in vocabulary().as_object().unwrap() {
            for (kind, fields) in kinds.as_object().unwrap() {
                for (name, field) in fields.as_object().unwrap() {
                    assert!(field["type"].is_string(), "{group} {kind} {name}: {field}");
                    assert!(field["type"] != "object" || field.get("of").or(field.get("items")).is_some(), "{name}");
                }
            }
        }
    }
}
