//! Diagnostics: lines on standard error that tell what twinnet does, as much as the variable `TWINNET_LOG` asks for.
//!
//! Code says what happens with the macros of `tracing`; a level that is off costs one comparison there. Lab processes
//! inherit the variable from their owner. A level means: `error`, a part of twinnet has ended or has a fault; `warn`,
//! check this before you trust the result; `info`, what a lab went through; `debug`, every request.

use std::ffi::OsStr;
use std::fmt;

use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// The variable that has the level.
pub const VARIABLE: &str = "TWINNET_LOG";

/// The levels by name, each of which tells what those before it tell too.
const LEVELS: [(&str, LevelFilter); 5] = [
    ("off", LevelFilter::OFF),
    ("error", LevelFilter::ERROR),
    ("warn", LevelFilter::WARN),
    ("info", LevelFilter::INFO),
    ("debug", LevelFilter::DEBUG),
];

/// Writes diagnostics of this process to standard error from now on, at the level that [`VARIABLE`] names; `warn` when
/// it is not set. Only the first call has an effect. Called when the extension module is loaded, in a program that
/// uses twinnet as in a lab process.
///
/// # Errors
/// When the variable names no level: what it says and what it can say.
pub fn begin() -> Result<(), String> {
    let level = level(std::env::var_os(VARIABLE).as_deref())?;
    // A write that fails is not told on the very stream that failed.
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .log_internal_errors(false)
        .event_format(Line)
        .finish();
    // It fails where this process has one already.
    let _ = tracing::subscriber::set_global_default(subscriber);
    Ok(())
}

fn level(given: Option<&OsStr>) -> Result<LevelFilter, String> {
    let Some(given) = given.filter(|given| !given.is_empty()) else { return Ok(LevelFilter::WARN) };
    LEVELS.iter().find(|(name, _)| given.eq_ignore_ascii_case(name)).map(|(_, level)| *level).ok_or_else(|| {
        let names = LEVELS.map(|(name, _)| name).join(", ");
        format!("{VARIABLE} is {given:?}; it can be one of {names}")
    })
}

/// `twinnet: 2026-03-01T12:00:00.000000Z info: the network runs hosts=2`.
struct Line;

impl<S, N> FormatEvent<S, N> for Line
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        writer.write_str("twinnet: ")?;
        SystemTime.format_time(&mut writer)?;
        let level = LevelFilter::from_level(*event.metadata().level());
        let name = LEVELS.iter().find(|(_, one)| *one == level).map_or("", |(name, _)| name);
        write!(writer, " {name}: ")?;
        context.format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn told(level: LevelFilter) -> String {
        let written = Written::default();
        let writer = written.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_writer(move || writer.clone())
            .event_format(Line)
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!(interface = %"eth1", "the interface is gone");
            tracing::info!(hosts = 2, "the network runs");
        });
        let bytes = written.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_line_has_its_time_its_level_and_its_fields() {
        let text = told(LevelFilter::INFO);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines.iter().all(|line| line.starts_with("twinnet: 2")), "{text}");
        assert!(lines[0].ends_with("Z warn: the interface is gone interface=eth1"), "{text}");
        assert!(lines[1].ends_with("Z info: the network runs hosts=2"), "{text}");
    }

    #[test]
    fn a_level_tells_what_is_at_least_as_grave() {
        assert_eq!(told(LevelFilter::WARN).lines().count(), 1);
        assert_eq!(told(LevelFilter::OFF), "");
    }

    #[test]
    fn a_level_is_named_in_words_and_warn_unless_it_is_named() {
        assert_eq!(level(None), Ok(LevelFilter::WARN));
        assert_eq!(level(Some(OsStr::new(""))), Ok(LevelFilter::WARN));
        assert_eq!(level(Some(OsStr::new("Debug"))), Ok(LevelFilter::DEBUG));
        assert_eq!(
            level(Some(OsStr::new("loud"))),
            Err("TWINNET_LOG is \"loud\"; it can be one of off, error, warn, info, debug".to_owned())
        );
    }
}
