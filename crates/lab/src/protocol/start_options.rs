//! The options of `start`: read once, with the whole request.

use serde::Deserialize;
use serde_json::{Map, Value};
use twinnet_units::Duration;

/// The most threads that can be asked for.
const MOST_THREADS: u64 = 64;

/// The options of a lab on the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub struct StartOptions {
    /// The way real hosts are joined to the fabric.
    pub joining: Joining,
    /// The loops ask for real-time scheduling.
    pub realtime: bool,
    /// Greatest lateness at which a line still catches up; `None`: derived from each line's rate.
    pub slip_after: Option<Duration>,
    /// Threads that move the network.
    pub fabric_threads: FabricThreads,
    /// The reading of `CLOCK_MONOTONIC` at which the lab's time is zero, in nanoseconds; `None`: the moment it starts.
    pub zero_ns: Option<u64>,
}

impl Default for StartOptions {
    fn default() -> Self {
        Self {
            joining: Joining::Auto,
            realtime: true,
            slip_after: None,
            fabric_threads: FabricThreads::Auto,
            zero_ns: None,
        }
    }
}

/// The way real hosts are joined to the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joining {
    /// By a TAP where it is permitted, and by a veth otherwise.
    Auto,
    /// By a TAP.
    Tap,
    /// By a pair of veth interfaces.
    Veth,
}

/// The number of threads that move the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FabricThreads {
    /// By the processors that are free, and where nothing is lost by it.
    Auto,
    /// So many, as far as the network can be divided.
    Wanted(usize),
}

/// The options that there are.
const OPTIONS: [&str; 5] = ["interface", "realtime", "slip_after_ps", "fabric_threads", "zero_ns"];

impl TryFrom<Value> for StartOptions {
    type Error = String;

    fn try_from(given: Value) -> Result<Self, String> {
        let Value::Object(fields) = given else { return Err(format!("the options are {given}; they are an object")) };
        if let Some(key) = fields.keys().find(|key| !OPTIONS.contains(&key.as_str())) {
            return Err(format!("there is no option {key:?}; there are {}", OPTIONS.join(", ")));
        }
        Ok(Self {
            joining: option(&fields, "interface", "\"auto\", \"tap\" or \"veth\"", |value| match value.as_str()? {
                "auto" => Some(Joining::Auto),
                "tap" => Some(Joining::Tap),
                "veth" => Some(Joining::Veth),
                _ => None,
            })?
            .unwrap_or(Joining::Auto),
            realtime: option(&fields, "realtime", "\"auto\" or \"off\"", |value| match value.as_str()? {
                "auto" => Some(true),
                "off" => Some(false),
                _ => None,
            })?
            .unwrap_or(true),
            slip_after: option(&fields, "slip_after_ps", "a whole number above 0", |value| {
                value.as_u64().filter(|ps| *ps > 0).map(Duration::from_ps)
            })?,
            fabric_threads: option(
                &fields,
                "fabric_threads",
                &format!("\"auto\" or a whole number from 1 to {MOST_THREADS}"),
                |value| match value.as_u64() {
                    Some(wanted) if (1..=MOST_THREADS).contains(&wanted) => {
                        usize::try_from(wanted).ok().map(FabricThreads::Wanted)
                    }
                    _ => (value == "auto").then_some(FabricThreads::Auto),
                },
            )?
            .unwrap_or(FabricThreads::Auto),
            zero_ns: option(&fields, "zero_ns", "a whole number from 0", Value::as_u64)?,
        })
    }
}

/// Returns what `read` makes of the option `name`; `None` where it is absent or null.
fn option<T>(
    fields: &Map<String, Value>,
    name: &str,
    allowed: &str,
    read: impl FnOnce(&Value) -> Option<T>,
) -> Result<Option<T>, String> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            read(value).map(Some).ok_or_else(|| format!("the option {name} is {value}; it can be {allowed}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: Value) -> Result<StartOptions, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn an_absent_option_and_a_null_mean_the_usual() {
        let usual = StartOptions::default();
        assert_eq!(read(json!({})), Ok(usual));
        let null = json!({
            "interface": null, "realtime": null, "slip_after_ps": null, "fabric_threads": null, "zero_ns": null,
        });
        assert_eq!(read(null), Ok(usual));
        assert_eq!(read(json!({"interface": "auto", "realtime": "auto", "fabric_threads": "auto"})), Ok(usual));
    }

    #[test]
    fn each_option_is_read() {
        let given =
            json!({"interface": "veth", "realtime": "off", "slip_after_ps": 7, "fabric_threads": 64, "zero_ns": 5});
        assert_eq!(
            read(given),
            Ok(StartOptions {
                joining: Joining::Veth,
                realtime: false,
                slip_after: Some(Duration::from_ps(7)),
                fabric_threads: FabricThreads::Wanted(64),
                zero_ns: Some(5),
            })
        );
        assert_eq!(read(json!({"interface": "tap"})).unwrap().joining, Joining::Tap);
    }

    #[test]
    fn other_values_are_refused_with_what_is_allowed() {
        for (given, words) in [
            (json!([]), "they are an object"),
            (json!({"colour": 1}), "there is no option \"colour\""),
            (json!({"interface": "wire"}), "the option interface is \"wire\"; it can be \"auto\""),
            (json!({"realtime": true}), "the option realtime is true; it can be \"auto\" or \"off\""),
            (json!({"slip_after_ps": 0}), "a whole number above 0"),
            (json!({"fabric_threads": 0}), "a whole number from 1 to 64"),
            (json!({"fabric_threads": 65}), "a whole number from 1 to 64"),
            (json!({"fabric_threads": -1}), "the option fabric_threads is -1"),
            (json!({"fabric_threads": "two"}), "the option fabric_threads is \"two\""),
            (json!({"zero_ns": -1}), "a whole number from 0"),
            (json!({"fabric_threads": 1.5}), "the option fabric_threads is 1.5"),
        ] {
            let told = read(given.clone()).unwrap_err();
            assert!(told.contains(words), "{given}: {told}");
        }
    }
}
