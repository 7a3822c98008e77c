//! Queue configurations as they are written, and the disciplines built from them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use twinnet_units::random::{stream, Rng};

use super::cbq::CbqConfig;
use super::classify::ClassifyConfig;
use super::codel::CodelConfig;
use super::delay::DelayConfig;
use super::fq_codel::FqCodelConfig;
use super::htb::{HtbLeaf, DEFAULT_MIN_RATE_BPS, PRIORITIES};
use super::own::OwnConfig;
use super::pie::PieConfig;
use super::ranges::{
    check_burst, check_count, check_rate, refuse, QueueError, HIGHEST_RATE_BPS, SHALLOWEST_BURST_BYTES,
};
use super::red::RedConfig;
use super::sfq::SfqConfig;
use super::{Drr, Fifo, Htb, Priority, QueueDiscipline, Tbf};

/// Frames that a queue keeps where nothing else is said.
pub const DEFAULT_LIMIT_FRAMES: u64 = 1000;
/// Disciplines within disciplines, the outermost counted.
const DEEPEST: usize = 8;

/// The surroundings of a discipline: what it draws its chances from, and what it cannot know from its own
/// configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Site<'a> {
    /// Seed of the run.
    pub seed: u64,
    /// Name of the port: each port, and each discipline at it, has a stream of its own.
    pub port: &'a str,
    /// Rate of the line behind, or of the shaper around, where there is one.
    pub rate_bps: Option<u64>,
}

impl Site<'_> {
    /// The stream of the discipline at `path` in the configuration.
    pub(super) fn random(self, path: &str) -> Rng {
        stream(self.seed, &format!("{path} at {}", self.port))
    }

    /// A number that only the stream of this discipline tells: what a hash begins with.
    pub(super) fn salt(self, path: &str) -> u64 {
        use rand::Rng as _;
        self.random(path).next_u64()
    }

    fn behind(self, rate_bps: u64) -> Self {
        Self { rate_bps: Some(rate_bps), ..self }
    }
}

/// The queue discipline of a port: the treatment of frames that it cannot send yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum QueueConfig {
    /// First in, first out; what comes when it is full is dropped. At least one limit is needed.
    Fifo {
        /// Frames it keeps.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1))]
        limit_frames: Option<u64>,
        /// Link-layer bytes it keeps.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1))]
        limit_bytes: Option<u64>,
    },
    /// Strict priority: a band is served only when all before it are empty.
    Priority {
        /// Band 0 first. A frame's queue number selects its band.
        bands: Vec<QueueConfig>,
    },
    /// Deficit round robin.
    Drr {
        /// Class 0 first. A frame's queue number selects its class.
        classes: Vec<DrrClassConfig>,
    },
    /// Token bucket: a rate and a burst.
    Tbf {
        /// Link-layer rate.
        #[schemars(range(min = 1, max = HIGHEST_RATE_BPS))]
        rate_bps: u64,
        /// Depth of the bucket in link-layer bytes.
        #[schemars(range(min = SHALLOWEST_BURST_BYTES))]
        burst_bytes: u64,
        /// The queue of what waits for tokens; null is a FIFO of 1000 frames.
        #[serde(default)]
        queue: Option<Box<QueueConfig>>,
    },
    /// Hierarchical token bucket as Open vSwitch's `linux-htb`.
    Htb {
        /// The port's `max-rate`.
        #[schemars(range(min = 1, max = HIGHEST_RATE_BPS))]
        rate_bps: u64,
        /// By queue number. A frame for a number that is not here goes to queue 0.
        #[serde(deserialize_with = "queues_by_number")]
        #[schemars(with = "BTreeMap<String, HtbQueueConfig>")]
        queues: BTreeMap<u32, HtbQueueConfig>,
    },
    /// Stochastic fairness queueing.
    Sfq(SfqConfig),
    /// Random early detection.
    Red(RedConfig),
    /// Controlled delay.
    Codel(CodelConfig),
    /// Flow queueing with controlled delay.
    FqCodel(FqCodelConfig),
    /// Proportional integral controller enhanced.
    Pie(PieConfig),
    /// Class-based queueing.
    Cbq(CbqConfig),
    /// Classes by the bytes of the header.
    Classify(ClassifyConfig),
    /// A delay and losses.
    Delay(DelayConfig),
    /// One that was brought along.
    Own(OwnConfig),
}

/// One class of deficit round robin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DrrClassConfig {
    /// Link-layer bytes it may send in a turn.
    #[schemars(range(min = 1, max = u32::MAX))]
    pub quantum_bytes: u64,
    /// The queue of its frames; null is a FIFO of 1000 frames.
    #[serde(default)]
    pub queue: Option<QueueConfig>,
}

/// One queue of `linux-htb`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HtbQueueConfig {
    /// Guaranteed rate; null is 12 kbit/s (an MTU a second).
    #[serde(default)]
    #[schemars(range(min = 1, max = HIGHEST_RATE_BPS))]
    pub min_rate_bps: Option<u64>,
    /// Ceiling; null is the port's rate.
    #[serde(default)]
    #[schemars(range(min = 1, max = HIGHEST_RATE_BPS))]
    pub max_rate_bps: Option<u64>,
    /// Depth of its buckets; null is MTU + 64. Open vSwitch uses no less than that, nor does this.
    #[serde(default)]
    #[schemars(range(min = SHALLOWEST_BURST_BYTES))]
    pub burst_bytes: Option<u64>,
    /// 0 to 7; spare capacity goes to lower numbers first.
    #[serde(default)]
    #[schemars(range(max = PRIORITIES - 1))]
    pub priority: u32,
    /// The queue of its frames; null is a FIFO of 1000 frames.
    #[serde(default)]
    pub queue: Option<QueueConfig>,
}

impl Default for QueueConfig {
    /// A FIFO of 1000 frames.
    fn default() -> Self {
        Self::Fifo { limit_frames: Some(DEFAULT_LIMIT_FRAMES), limit_bytes: None }
    }
}

impl QueueConfig {
    /// Builds the discipline for a port that has no name, seed or rate, or tells the first thing that is wrong with the
    /// configuration.
    ///
    /// # Errors
    /// A [`QueueError`] names the place, what stands there and what is allowed.
    pub fn build(&self) -> Result<Box<dyn QueueDiscipline>, QueueError> {
        self.build_for(Site::default())
    }

    /// Builds the discipline for where it stands.
    ///
    /// # Errors
    /// As [`Self::build`].
    pub fn build_for(&self, site: Site<'_>) -> Result<Box<dyn QueueDiscipline>, QueueError> {
        self.build_at("queue", 1, site)
    }

    /// Checks the configuration without keeping what it builds.
    ///
    /// # Errors
    /// As [`Self::build`].
    pub fn validate(&self) -> Result<(), QueueError> {
        self.build().map(drop)
    }

    pub(super) fn build_at(
        &self,
        path: &str,
        depth: usize,
        site: Site<'_>,
    ) -> Result<Box<dyn QueueDiscipline>, QueueError> {
        if depth > DEEPEST {
            return refuse(
                path,
                format!("a queue at depth {depth}"),
                format!("at most {DEEPEST} disciplines within each other"),
            );
        }
        match self {
            Self::Fifo { limit_frames, limit_bytes } => build_fifo(path, *limit_frames, *limit_bytes),
            Self::Priority { bands } => {
                let path = format!("{path}.bands");
                check_count(&path, bands.len())?;
                let bands = bands
                    .iter()
                    .enumerate()
                    .map(|(index, band)| band.build_at(&format!("{path}.{index}"), depth + 1, site))
                    .collect::<Result<Vec<_>, _>>()?;
                Ok(Box::new(Priority::new(bands)))
            }
            Self::Drr { classes } => {
                let path = format!("{path}.classes");
                check_count(&path, classes.len())?;
                let classes = classes
                    .iter()
                    .enumerate()
                    .map(|(index, class)| class.build_at(&format!("{path}.{index}"), depth, site))
                    .collect::<Result<Vec<_>, _>>()?;
                Ok(Box::new(Drr::new(classes)))
            }
            Self::Tbf { rate_bps, burst_bytes, queue } => {
                check_rate(&format!("{path}.rate_bps"), *rate_bps, HIGHEST_RATE_BPS)?;
                check_burst(&format!("{path}.burst_bytes"), *burst_bytes)?;
                let inside =
                    build_or_fifo(queue.as_deref(), &format!("{path}.queue"), depth + 1, site.behind(*rate_bps))?;
                Ok(Box::new(Tbf::new(*rate_bps, *burst_bytes, inside)))
            }
            Self::Htb { rate_bps, queues } => {
                check_rate(&format!("{path}.rate_bps"), *rate_bps, HIGHEST_RATE_BPS)?;
                let path = format!("{path}.queues");
                check_count(&path, queues.len())?;
                let mut leaves = BTreeMap::new();
                for (number, queue) in queues {
                    leaves.insert(*number, queue.build_at(&format!("{path}.{number}"), *rate_bps, depth, site)?);
                }
                Ok(Box::new(Htb::new(*rate_bps, leaves, default_fifo)))
            }
            Self::Sfq(config) => config.build_at(path, site),
            Self::Red(config) => config.build_at(path, site),
            Self::Codel(config) => config.build_at(path),
            Self::FqCodel(config) => config.build_at(path, site),
            Self::Pie(config) => config.build_at(path, site),
            Self::Cbq(config) => config.build_at(path, depth, site),
            Self::Classify(config) => config.build_at(path, depth, site),
            Self::Delay(config) => config.build_at(path, site),
            Self::Own(config) => config.build_at(path, site),
        }
    }
}

impl DrrClassConfig {
    fn build_at(
        &self,
        path: &str,
        depth: usize,
        site: Site<'_>,
    ) -> Result<(u64, Box<dyn QueueDiscipline>), QueueError> {
        let most = u64::from(u32::MAX);
        if !(1..=most).contains(&self.quantum_bytes) {
            let allowed = format!("a quantum from 1 to {most} bytes");
            return refuse(&format!("{path}.quantum_bytes"), self.quantum_bytes.to_string(), allowed);
        }
        Ok((self.quantum_bytes, build_or_fifo(self.queue.as_ref(), &format!("{path}.queue"), depth + 1, site)?))
    }
}

impl HtbQueueConfig {
    fn build_at(&self, path: &str, port_rate_bps: u64, depth: usize, site: Site<'_>) -> Result<HtbLeaf, QueueError> {
        let max_rate_bps = self.max_rate_bps.unwrap_or(port_rate_bps);
        check_rate(&format!("{path}.max_rate_bps"), max_rate_bps, port_rate_bps)?;
        let min_rate_bps = self.min_rate_bps.unwrap_or(DEFAULT_MIN_RATE_BPS.min(max_rate_bps));
        check_rate(&format!("{path}.min_rate_bps"), min_rate_bps, max_rate_bps)?;
        if let Some(burst_bytes) = self.burst_bytes {
            check_burst(&format!("{path}.burst_bytes"), burst_bytes)?;
        }
        if self.priority >= PRIORITIES {
            let allowed = format!("a priority from 0 (first) to {}", PRIORITIES - 1);
            return refuse(&format!("{path}.priority"), self.priority.to_string(), allowed);
        }
        let site = site.behind(max_rate_bps);
        let inside = build_or_fifo(self.queue.as_ref(), &format!("{path}.queue"), depth + 1, site)?;
        Ok(HtbLeaf { min_rate_bps, max_rate_bps, burst_bytes: self.burst_bytes, priority: self.priority, inside })
    }
}

fn build_fifo(
    path: &str,
    limit_frames: Option<u64>,
    limit_bytes: Option<u64>,
) -> Result<Box<dyn QueueDiscipline>, QueueError> {
    if limit_frames.is_none() && limit_bytes.is_none() {
        return refuse(path, "a fifo without a limit", "limit_frames, limit_bytes or both");
    }
    for (key, limit) in [("limit_frames", limit_frames), ("limit_bytes", limit_bytes)] {
        if limit == Some(0) {
            return refuse(&format!("{path}.{key}"), "0", "at least 1; a queue of nothing sends nothing");
        }
    }
    Ok(Box::new(Fifo::new(limit_frames, limit_bytes)))
}

pub(super) fn build_or_fifo(
    queue: Option<&QueueConfig>,
    path: &str,
    depth: usize,
    site: Site<'_>,
) -> Result<Box<dyn QueueDiscipline>, QueueError> {
    queue.map_or_else(|| Ok(default_fifo()), |queue| queue.build_at(path, depth, site))
}

fn default_fifo() -> Box<dyn QueueDiscipline> {
    Box::new(Fifo::new(Some(DEFAULT_LIMIT_FRAMES), None))
}

/// JSON's keys are text, and serde's tagged enums do not turn them into numbers.
fn queues_by_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<u32, HtbQueueConfig>, D::Error> {
    by_number(deserializer, "queues")
}

/// Reads a mapping of numbers that are written as text; `name` is what the error calls it.
pub(super) fn by_number<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
    name: &str,
) -> Result<BTreeMap<u32, T>, D::Error> {
    let by_text = BTreeMap::<String, T>::deserialize(deserializer)?;
    by_text
        .into_iter()
        .map(|(key, value)| match key.parse::<u32>() {
            Ok(number) if number.to_string() == key => Ok((number, value)),
            _ => Err(serde::de::Error::custom(format!("{name}: key {key:?}; allowed is a number such as \"0\""))),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(json: &str) -> QueueError {
        let config: QueueConfig = serde_json::from_str(json).expect("well-formed");
        config.build().map(drop).expect_err("refused")
    }

    #[test]
    fn every_kind_of_the_protocol_is_read_written_and_built() {
        for text in [
            r#"{"kind":"fifo","limit_frames":1000}"#,
            r#"{"kind":"fifo","limit_bytes":64000}"#,
            r#"{"kind":"priority","bands":[{"kind":"fifo","limit_frames":10},{"kind":"fifo","limit_frames":20}]}"#,
            r#"{"kind":"drr","classes":[{"quantum_bytes":1514,"queue":{"kind":"fifo","limit_frames":10}}]}"#,
            r#"{"kind":"tbf","rate_bps":1000000,"burst_bytes":3000,"queue":{"kind":"fifo","limit_frames":10}}"#,
            concat!(
                r#"{"kind":"htb","rate_bps":1000000000,"queues":{"0":{"min_rate_bps":12000,"#,
                r#""max_rate_bps":1000000000,"burst_bytes":null,"priority":0,"queue":null},"12":{"min_rate_bps":5,"#,
                r#""max_rate_bps":6,"burst_bytes":20000,"priority":7,"queue":{"kind":"fifo","limit_frames":10}}}}"#,
            ),
            r#"{"kind":"sfq","limit_frames":127,"buckets":1024,"quantum_bytes":1514,"perturb_ps":0}"#,
            concat!(
                r#"{"kind":"red","min_bytes":1000,"max_bytes":null,"limit_bytes":9000,"max_probability":0.1,"#,
                r#""weight":0.002,"average_frame_bytes":1000,"rate_bps":null,"gentle":true,"ecn":false}"#,
            ),
            r#"{"kind":"codel","limit_frames":1000,"target_ps":5000000000,"interval_ps":100000000000,"ecn":false}"#,
            concat!(
                r#"{"kind":"fq_codel","limit_frames":9,"limit_bytes":33554432,"flows":1024,"quantum_bytes":1514,"#,
                r#""target_ps":5000000000,"interval_ps":100000000000,"ecn":true}"#,
            ),
            concat!(
                r#"{"kind":"pie","limit_frames":1000,"target_ps":15000000000,"update_ps":15000000000,"burst_ps":0,"#,
                r#""ecn":false}"#,
            ),
            concat!(
                r#"{"kind":"cbq","rate_bps":9,"classes":{"1":{"parent":null,"rate_bps":9,"priority":0,"#,
                r#""bounded":false,"isolated":false,"burst_frames":16,"queue":null},"2":{"parent":1,"rate_bps":3,"#,
                r#""priority":7,"bounded":true,"isolated":true,"burst_frames":0,"queue":{"kind":"fifo","#,
                r#""limit_frames":10}}},"gain":5,"link_sharing":"formal"}"#,
            ),
            r#"{"kind":"delay","delay_ps":5000000000,"jitter_ps":0,"loss":0.1,"limit_frames":1000}"#,
            concat!(
                r#"{"kind":"classify","rules":[{"number":1,"ether_type":2048,"header":[{"at":20,"mask":65535,"#,
                r#""value":80}]},{"number":2,"ether_type":null,"header":[]}],"otherwise":null,"#,
                r#""queue":{"kind":"fifo","limit_frames":10}}"#,
            ),
        ] {
            let config: QueueConfig = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&config).unwrap(), text);
            config.build().unwrap();
        }
    }

    #[test]
    fn values_out_of_range_are_refused_with_their_path() {
        let cases = [
            (r#"{"kind":"fifo"}"#, "queue", "a fifo without a limit"),
            (r#"{"kind":"fifo","limit_bytes":0}"#, "queue.limit_bytes", "0"),
            (r#"{"kind":"priority","bands":[]}"#, "queue.bands", "0 entries"),
            (
                r#"{"kind":"priority","bands":[{"kind":"fifo","limit_frames":1},{"kind":"drr","classes":[]}]}"#,
                "queue.bands.1.classes",
                "0 entries",
            ),
            (r#"{"kind":"drr","classes":[{"quantum_bytes":0,"queue":null}]}"#, "queue.classes.0.quantum_bytes", "0"),
            (r#"{"kind":"tbf","rate_bps":0,"burst_bytes":3000}"#, "queue.rate_bps", "0 bit/s"),
            (r#"{"kind":"tbf","rate_bps":1,"burst_bytes":1517}"#, "queue.burst_bytes", "1517 bytes"),
            (r#"{"kind":"htb","rate_bps":0,"queues":{"0":{}}}"#, "queue.rate_bps", "0 bit/s"),
            (r#"{"kind":"htb","rate_bps":9,"queues":{}}"#, "queue.queues", "0 entries"),
            (
                r#"{"kind":"htb","rate_bps":9,"queues":{"3":{"max_rate_bps":10}}}"#,
                "queue.queues.3.max_rate_bps",
                "10 bit/s",
            ),
            (
                r#"{"kind":"htb","rate_bps":9,"queues":{"3":{"min_rate_bps":5,"max_rate_bps":4}}}"#,
                "queue.queues.3.min_rate_bps",
                "5 bit/s",
            ),
            (r#"{"kind":"htb","rate_bps":9,"queues":{"3":{"priority":8}}}"#, "queue.queues.3.priority", "8"),
            (r#"{"kind":"sfq","buckets":126}"#, "queue.buckets", "126"),
            (r#"{"kind":"sfq","quantum_bytes":63}"#, "queue.quantum_bytes", "63"),
            (r#"{"kind":"sfq","perturb_ps":1}"#, "queue.perturb_ps", "1"),
            (r#"{"kind":"red","min_bytes":0}"#, "queue.min_bytes", "0"),
            (r#"{"kind":"red","min_bytes":9,"max_bytes":9}"#, "queue.max_bytes", "9"),
            (r#"{"kind":"red","min_bytes":9,"limit_bytes":26}"#, "queue.limit_bytes", "26"),
            (r#"{"kind":"red","min_bytes":18446744073709551615}"#, "queue.min_bytes", "18446744073709551615"),
            (r#"{"kind":"red","min_bytes":9,"weight":0.0}"#, "queue.weight", "0"),
            (r#"{"kind":"red","min_bytes":9,"max_probability":1.5}"#, "queue.max_probability", "1.5"),
            (r#"{"kind":"codel","limit_frames":0}"#, "queue.limit_frames", "0"),
            (r#"{"kind":"codel","target_ps":999999}"#, "queue.target_ps", "999999"),
            (r#"{"kind":"fq_codel","flows":65537}"#, "queue.flows", "65537"),
            (r#"{"kind":"fq_codel","limit_bytes":0}"#, "queue.limit_bytes", "0"),
            (r#"{"kind":"pie","update_ps":999999999}"#, "queue.update_ps", "999999999"),
            (r#"{"kind":"cbq","rate_bps":9,"classes":{"3":{"rate_bps":10}}}"#, "queue.classes.3.rate_bps", "10 bit/s"),
            (r#"{"kind":"cbq","rate_bps":9,"classes":{"3":{"rate_bps":9}},"gain":17}"#, "queue.gain", "17"),
            (
                r#"{"kind":"classify","rules":[{"number":1,"ether_type":5}],"queue":{"kind":"codel"}}"#,
                "queue.rules.0.ether_type",
                "5",
            ),
            (
                r#"{"kind":"classify","rules":[{"number":1,"header":[{"at":253,"mask":0,"value":0}]}],
                "queue":{"kind":"codel"}}"#,
                "queue.rules.0.header.0.at",
                "253",
            ),
            (r#"{"kind":"delay","loss":1.5}"#, "queue.loss", "1.5"),
            (r#"{"kind":"delay","delay_ps":1000000000000001}"#, "queue.delay_ps", "1000000000000001"),
            (r#"{"kind":"delay","limit_frames":0}"#, "queue.limit_frames", "0"),
            (r#"{"kind":"classify","rules":[],"queue":{"kind":"fifo"}}"#, "queue.queue", "a fifo without a limit"),
        ];
        for (json, path, value) in cases {
            let error = error_of(json);
            assert_eq!((error.path.as_str(), error.value.as_str()), (path, value), "{json}");
            assert!(!error.allowed.is_empty());
        }
    }

    #[test]
    fn the_message_tells_place_value_and_what_is_allowed() {
        let error = error_of(r#"{"kind":"htb","rate_bps":9,"queues":{"1":{"min_rate_bps":5,"max_rate_bps":4}}}"#);
        assert_eq!(error.to_string(), "queue.queues.1.min_rate_bps: got 5 bit/s; allowed is 1 to 4 bit/s");
    }

    #[test]
    fn unknown_kinds_keys_and_queue_numbers_are_refused() {
        for json in [
            r#"{"kind":"wfq"}"#,
            r#"{"kind":"codel","target":5}"#,
            r#"{"kind":"red","min_bytes":1000,"max":2000}"#,
            r#"{"kind":"cbq","rate_bps":9,"classes":{"one":{"rate_bps":9}}}"#,
            r#"{"kind":"fifo","limit_frames":1,"limit":2}"#,
            r#"{"kind":"fifo","limit_frames":-1}"#,
            r#"{"kind":"htb","rate_bps":9,"queues":{"one":{}}}"#,
            r#"{"kind":"htb","rate_bps":9,"queues":{"01":{}}}"#,
            r#"{"kind":"htb","rate_bps":9,"queues":{"1":{"rate":5}}}"#,
            r#"{"kind":"drr","classes":[{"quantum_bytes":1,"weight":5}]}"#,
        ] {
            assert!(serde_json::from_str::<QueueConfig>(json).is_err(), "{json}");
        }
    }

    #[test]
    fn eight_disciplines_may_stand_within_each_other_and_not_nine() {
        let nest = |times: usize| {
            (1..times).fold(QueueConfig::default(), |inside, _| QueueConfig::Priority { bands: vec![inside] })
        };
        assert!(nest(8).build().is_ok());
        let error = nest(9).build().map(drop).unwrap_err();
        assert_eq!(error.value, "a queue at depth 9");
    }
}
