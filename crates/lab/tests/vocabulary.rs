//! The ranges that the vocabulary tells are those that the types check: each bound is taken, and what lies beyond it
//! is refused.

use std::cell::RefCell;
use std::sync::Arc;

use serde_json::{json, Value};
use twinnet_apps::AppConfig;
use twinnet_impair::ImpairConfig;
use twinnet_lab::vocabulary::vocabulary;
use twinnet_queue::own::{self, Judge};
use twinnet_queue::QueueConfig;

const SECOND_PS: u64 = 1_000_000_000_000;
const HOUR_PS: u64 = 3600 * SECOND_PS;

type Accepts = fn(&Value) -> Result<(), String>;

fn an_app(spec: &Value) -> Result<(), String> {
    let config: AppConfig = serde_json::from_value(spec.clone()).map_err(|error| error.to_string())?;
    config.validate().map_err(|error| error.to_string())
}

fn a_queue(spec: &Value) -> Result<(), String> {
    let config: QueueConfig = serde_json::from_value(spec.clone()).map_err(|error| error.to_string())?;
    config.validate().map_err(|error| error.to_string())
}

fn an_impairment(spec: &Value) -> Result<(), String> {
    let config: ImpairConfig = serde_json::from_value(spec.clone()).map_err(|error| error.to_string())?;
    config.validate().map_err(|error| error.to_string())
}

/// The place of a field: a whole description and the way to the object that has the field.
struct Place {
    accepts: Accepts,
    whole: Value,
    way: &'static str,
}

impl Place {
    fn object(&self) -> &Value {
        self.whole.pointer(self.way).unwrap_or_else(|| panic!("{} in {}", self.way, self.whole))
    }

    fn with(&self, field: &str, value: Value) -> Result<(), String> {
        let mut whole = self.whole.clone();
        whole.pointer_mut(self.way).unwrap()[field] = value;
        (self.accepts)(&whole)
    }
}

/// Asks the type that reads `place` for each bound of each field that stands there.
fn hold_to_their_ranges(name: &str, fields: &Value, places: &[Place]) {
    let wrong = RefCell::new(Vec::new());
    for place in places {
        (place.accepts)(&place.whole).unwrap_or_else(|error| panic!("{name}: the example is refused: {error}"));
    }
    for (field, told) in fields.as_object().unwrap_or_else(|| panic!("{name} is not told")) {
        let items = told["items"].get("minimum").is_some().then(|| &told["items"]);
        let of = items.unwrap_or(told);
        if of["type"] != "integer" && of["type"] != "number" {
            continue;
        }
        let place = places
            .iter()
            .find(|place| place.object().get(field).is_some_and(|value| !value.is_null()))
            .unwrap_or_else(|| panic!("{name}: no example has {field}"));
        let put = |value: Value| place.with(field, if items.is_some() { json!([value]) } else { value });
        let taken = |value: &Value| {
            if let Err(error) = put(value.clone()) {
                wrong.borrow_mut().push(format!("{name}.{field} = {value} is told, but refused: {error}"));
            }
        };
        let refused = |value: Value| {
            if put(value.clone()).is_ok() {
                wrong.borrow_mut().push(format!("{name}.{field} = {value} is beyond what is told, but taken"));
            }
        };
        let whole = of["type"] == "integer";
        match of.get("exclusive_minimum").or(of.get("minimum")) {
            Some(least) if of.get("exclusive_minimum").is_some() => refused(least.clone()),
            Some(least) => {
                taken(least);
                if of["or_zero"] == true {
                    taken(&json!(0));
                } else if whole {
                    refused(json!(least.as_f64().unwrap() - 1.0));
                    least.as_u64().filter(|least| *least > 0).into_iter().for_each(|least| refused(json!(least - 1)));
                } else {
                    let least = least.as_f64().unwrap();
                    refused(json!(least - (least.abs() * 1e-6).max(1e-9)));
                }
            }
            // Nothing but the type bounds it: an integer with a sign.
            None => taken(&json!(i64::MIN)),
        }
        match of.get("maximum") {
            Some(most) => {
                taken(most);
                match most.as_u64().filter(|_| whole) {
                    Some(u64::MAX) => {}
                    Some(most) => refused(json!(most + 1)),
                    None => refused(json!(most.as_f64().unwrap() * (1.0 + 1e-6))),
                }
            }
            // Nothing but the type bounds it.
            None => {
                let greatest = [json!(u64::MAX), json!(u32::MAX), json!(u16::MAX)];
                if !greatest.into_iter().any(|value| put(value).is_ok()) {
                    wrong.borrow_mut().push(format!("{name}.{field} has a maximum that is not told"));
                }
            }
        }
    }
    assert!(wrong.borrow().is_empty(), "{}", wrong.borrow().join("\n"));
}

fn apps() -> Vec<Value> {
    let to = |kind: &str, rest: Value| {
        let mut spec = json!({"kind": kind, "to": "10.0.0.4", "port": 5003, "flow": 1});
        spec.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        spec
    };
    let constant = json!({"distribution": "constant", "value": 1e9});
    vec![
        to(
            "udp_source",
            json!({"payload_bytes": 1470, "rate_bps": 1000, "duration_ps": SECOND_PS, "dscp": 1,
                                "clock_offset_ps": 1}),
        ),
        to("udp_source", json!({"payload_bytes": 1470, "packets_per_second": 10.0, "packets": 7})),
        json!({"kind": "udp_sink", "port": 5003, "interval_ps": SECOND_PS, "record_packets": 1, "mtu_bytes": 1500}),
        to(
            "rtp_source",
            json!({"frames_per_second": 25.0, "frame_bytes": [1], "dscp": 1, "frames": 1,
                                "shaping_ps": 1_000_000_000}),
        ),
        to("rtp_source", json!({"frames_per_second": 25.0, "frame_bytes": [1], "duration_ps": 1})),
        json!({"kind": "rtp_sink", "port": 5004, "interval_ps": SECOND_PS, "clock_hz": 90_000, "record_packets": 1,
               "mtu_bytes": 1500}),
        to(
            "tcp_source",
            json!({"interval_ps": SECOND_PS, "duration_ps": 1, "dscp": 1,
                                "info_interval_ps": SECOND_PS}),
        ),
        to("tcp_source", json!({"interval_ps": SECOND_PS, "bytes": 12})),
        to("tcp_source", json!({"interval_ps": SECOND_PS, "writes": 1, "rate_bps": 1, "payload_bytes": 16})),
        to("tcp_source", json!({"interval_ps": SECOND_PS, "writes": 1, "packets_per_second": 1, "payload_bytes": 16})),
        json!({"kind": "tcp_sink", "port": 5002, "interval_ps": SECOND_PS}),
        json!({"kind": "http_server", "port": 8080}),
        to(
            "http_client",
            json!({"bytes": 1, "count": 1, "connections": 1, "interval_ps": SECOND_PS,
                                 "duration_ps": SECOND_PS, "think_ps": constant}),
        ),
        to(
            "video_client",
            json!({"ladder_bps": [1_000_000], "segment_ps": SECOND_PS / 10, "buffer_ps": HOUR_PS,
                                  "needed_ps": 1, "duration_ps": 1, "interval_ps": SECOND_PS}),
        ),
        json!({"kind": "ping", "to": "10.0.0.4", "flow": 1, "count": 1, "interval_ps": HOUR_PS, "payload_bytes": 1,
               "timeout_ps": 1, "dscp": 1, "count_interval_ps": SECOND_PS}),
        json!({"kind": "clock_client", "to": "10.0.0.4", "port": 1, "machine": 1, "exchanges": 1,
               "flows": [{"flow": 1, "from_port": 1, "port": 1, "packets": 1}]}),
        json!({"kind": "clock_server", "port": 1, "machine": 1}),
        to(
            "bandwidth_prober",
            json!({"method": {"name": "hybrid"}, "most_payload": 1472, "most_rate_bps": 1_000_000,
                                      "budget_bytes": 1000, "duration_ps": SECOND_PS}),
        ),
        json!({"kind": "own_source", "to": "10.0.0.4", "port": 1, "flow": 1, "code": "mine", "settings": "{}",
               "dscp": 1, "duration_ps": 1}),
        json!({"kind": "own_sink", "port": 1, "interval_ps": 1_000_000_000, "record_packets": 1, "mtu_bytes": 1500,
               "code": "mine", "settings": "{}"}),
        json!({"kind": "own_tcp_source", "to": "10.0.0.4", "port": 1, "flow": 1, "code": "mine", "settings": "{}",
               "dscp": 1, "congestion_control": "cubic", "duration_ps": 1}),
        json!({"kind": "own_tcp_sink", "port": 1, "interval_ps": 1_000_000_000, "code": "mine", "settings": "{}",
               "congestion_control": "cubic"}),
        json!({"kind": "bandwidth_listener", "port": 1, "most_rate_bps": 1_000_000}),
    ]
}

#[test]
fn traffic_keeps_to_the_ranges_that_are_told() {
    for (kind, fields) in vocabulary()["traffic"].as_object().unwrap() {
        let places: Vec<Place> = apps()
            .into_iter()
            .filter(|spec| spec["kind"] == kind.as_str())
            .map(|whole| Place { accepts: an_app, whole, way: "" })
            .collect();
        let mut fields = fields.clone();
        if kind == "ping" {
            // At most 30,000 intervals: with an interval of an hour that is all that 64 bits can tell, and with
            // other intervals less.
            assert!(fields["timeout_ps"].get("maximum").is_none());
        }
        if kind == "video_client" {
            // Depends on the length of a segment, whose least the example has.
            assert_eq!(fields["buffer_ps"]["minimum"], SECOND_PS / 5);
            // The bounds of the length need a buffer that holds two.
            assert_eq!(fields["segment_ps"]["maximum"], 60 * SECOND_PS);
        }
        // A number in a list is asked for alone.
        fields.as_object_mut().unwrap().remove("to");
        hold_to_their_ranges(kind, &fields, &places);
    }
}

#[test]
fn parts_of_traffic_keep_to_the_ranges_that_are_told() {
    let model = json!({"rate_bps": 1_000_000, "group_frames": 12, "b_frames": 2, "variation": 0.1});
    let rtp = json!({"kind": "rtp_source", "to": "10.0.0.4", "port": 1, "flow": 1, "frames_per_second": 25.0,
                     "model": model, "frames": 1});
    let told = &vocabulary()["traffic_part"];
    hold_to_their_ranges("video_model", &told["video_model"], &[Place { accepts: an_app, whole: rtp, way: "/model" }]);
}

#[test]
fn estimators_keep_to_the_ranges_that_are_told() {
    for (name, fields) in vocabulary()["estimator"].as_object().unwrap() {
        let mut method = json!({"name": name});
        for (field, told) in fields.as_object().unwrap() {
            let value = told["default"].clone();
            method[field] = match told["type"].as_str() {
                Some("string") => json!("mine"),
                _ if value.is_null() => told["minimum"].clone(),
                _ => value,
            };
        }
        // Bounds that depend on another setting are asked for beside one that leaves them room.
        let (low, high) = match name.as_str() {
            "assolo" | "pathchirp" => (("low_bps", json!(1e3)), ("high_bps", json!(1e11))),
            "pathload" => (("least_gap_ns", json!(100)), ("usual_gap_ns", json!(100_000_000))),
            "hybrid" => (("least_trains", json!(3)), ("trains", json!(10_000))),
            _ => (("name", json!(name)), ("name", json!(name))),
        };
        (method[low.0], method[high.0]) = (low.1, high.1);
        let whole = json!({"kind": "bandwidth_prober", "to": "10.0.0.4", "port": 1, "flow": 1, "method": method,
                           "most_payload": 1472, "most_rate_bps": 1_000_000, "duration_ps": SECOND_PS});
        hold_to_their_ranges(name, fields, &[Place { accepts: an_app, whole, way: "/method" }]);
    }
}

#[test]
fn disciplines_keep_to_the_ranges_that_are_told() {
    const RATE: u64 = 1_000_000_000_000_000;
    const BYTES: u64 = (1 << 31) - 1;
    let of = |spec: Value| Place { accepts: a_queue, whole: spec, way: "" };
    let told = vocabulary();
    for (kind, fields) in told["queue"].as_object().unwrap() {
        let places = match kind.as_str() {
            "fifo" => vec![of(json!({"kind": "fifo", "limit_frames": 1, "limit_bytes": 1}))],
            "priority" => vec![of(json!({"kind": "priority", "bands": [{"kind": "fifo", "limit_frames": 1}]}))],
            "drr" => vec![of(json!({"kind": "drr", "classes": [{"quantum_bytes": 1}]}))],
            "tbf" => vec![of(json!({"kind": "tbf", "rate_bps": 1, "burst_bytes": 2000}))],
            "htb" => vec![of(json!({"kind": "htb", "rate_bps": 1, "queues": {"0": {}}}))],
            "cbq" => vec![of(json!({"kind": "cbq", "rate_bps": 1, "classes": {"0": {"rate_bps": 1}}, "gain": 1}))],
            "classify" => {
                vec![of(json!({"kind": "classify", "rules": [], "otherwise": 1, "queue": {"kind": "codel"}}))]
            }
            // The thresholds follow each other: each is asked for beside others that leave it room.
            "red" => vec![
                of(json!({"kind": "red", "min_bytes": null, "max_bytes": 2, "limit_bytes": null})),
                of(json!({"kind": "red", "min_bytes": 1, "max_bytes": null, "limit_bytes": BYTES, "rate_bps": 1,
                          "max_probability": 0.5, "weight": 0.5, "average_frame_bytes": 1})),
            ],
            "own" => {
                own::register(
                    "mine",
                    Arc::new(|_: &str, _: u64| -> Box<dyn Judge> { unreachable!("it is only checked") }),
                );
                vec![of(json!({"kind": "own", "code": "mine", "settings": "{}"}))]
            }
            _ => {
                let mut spec = json!({"kind": kind});
                for (field, told) in fields.as_object().unwrap() {
                    spec[field] = told["default"].clone();
                }
                vec![of(spec)]
            }
        };
        if kind == "red" {
            let red = &fields["min_bytes"];
            assert_eq!((red["minimum"].as_u64(), red["maximum"].as_u64()), (Some(1), Some(BYTES)));
            let mut alone = fields.clone();
            for threshold in ["min_bytes", "max_bytes", "limit_bytes"] {
                alone.as_object_mut().unwrap().remove(threshold);
            }
            hold_to_their_ranges(kind, &alone, &places[1..]);
        } else {
            hold_to_their_ranges(kind, fields, &places);
        }
    }
    let classes = &told["queue_class"];
    let drr = json!({"kind": "drr", "classes": [{"quantum_bytes": 1}]});
    hold_to_their_ranges("drr", &classes["drr"], &[Place { accepts: a_queue, whole: drr, way: "/classes/0" }]);
    let htb = json!({"kind": "htb", "rate_bps": RATE,
        "queues": {"0": {"min_rate_bps": 1, "burst_bytes": 2000, "priority": 1}, "1": {"max_rate_bps": 1}}});
    let ways = ["/queues/0", "/queues/1"].map(|way| Place { accepts: a_queue, whole: htb.clone(), way });
    hold_to_their_ranges("htb", &classes["htb"], &ways);
    let classify = json!({"kind": "classify", "queue": {"kind": "codel"},
        "rules": [{"number": 1, "ether_type": 2048, "header": [{"at": 1, "mask": 1, "value": 1}]}]});
    for (kind, way) in [("classify", "/rules/0"), ("header", "/rules/0/header/0")] {
        let place = Place { accepts: a_queue, whole: classify.clone(), way };
        hold_to_their_ranges(kind, &classes[kind], &[place]);
    }
    let cbq = json!({"kind": "cbq", "rate_bps": RATE,
        "classes": {"0": {"rate_bps": 1, "priority": 1, "burst_frames": 1}}});
    let mut fields = classes["cbq"].clone();
    // The number of another class: a test of contradictions has it.
    fields.as_object_mut().unwrap().remove("parent");
    hold_to_their_ranges("cbq", &fields, &[Place { accepts: a_queue, whole: cbq, way: "/classes/0" }]);
}

#[test]
fn impairments_keep_to_the_ranges_that_are_told() {
    let told = vocabulary();
    let whole = json!({"duplicate": 0.5, "corrupt": 0.5});
    let mut direction = told["link"]["direction"].clone();
    for field in ["rate_bps", "delay_ps"] {
        // Any number of these units is one.
        assert!(direction[field].get("maximum").is_none());
        direction.as_object_mut().unwrap().remove(field);
    }
    // Whether a moment is allowed depends on the others; the trace's own tests have that.
    direction.as_object_mut().unwrap().remove("delivery_trace").unwrap();
    hold_to_their_ranges("direction", &direction, &[Place { accepts: an_impairment, whole, way: "" }]);
    for (model, fields) in told["loss"].as_object().unwrap() {
        let loss = json!({"bernoulli": {"model": "bernoulli", "probability": 0.5},
            "gilbert_elliott": {"model": "gilbert_elliott", "to_bad": 0.5, "to_good": 0.5, "loss_good": 0.5,
                                "loss_bad": 0.5}});
        let whole = json!({"loss": loss[model]});
        hold_to_their_ranges(model, fields, &[Place { accepts: an_impairment, whole, way: "/loss" }]);
    }
}
