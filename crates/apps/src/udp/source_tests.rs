//! Tests of the source: its schedule, its account of it, and what it does when the host refuses.

use super::*;
use crate::loop_network::RecordingHost;
use serde_json::json;

fn source(fields: Value) -> UdpSource {
    let mut object = json!({"to": "10.0.0.2", "port": 9, "flow": 3, "process": "constant"});
    object.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    UdpSource::new(serde_json::from_value(object).unwrap())
}

/// Runs a source by calling it exactly at its deadlines, or late by what `late` says, and gives the calls' times
/// with the datagrams sent in each.
fn run(source: &mut UdpSource, host: &mut RecordingHost, late: impl Fn(usize) -> Duration) -> Vec<(Time, usize)> {
    let mut calls = Vec::new();
    let start = Time::from_ns(5_000);
    source.handle(start, Event::Start, host);
    calls.push((start, host.take_datagrams().len()));
    while let Some(deadline) = source.deadline() {
        let now = (deadline + late(calls.len())).max(calls[calls.len() - 1].0);
        source.handle(now, Event::Timer, host);
        calls.push((now, host.take_datagrams().len()));
        assert!(calls.len() < 1_000_000, "the source never ends");
    }
    calls
}

#[test]
fn a_constant_source_is_due_at_exact_multiples_of_its_interval() {
    // 1470 bytes at 512 Mbit/s: 22,968.75 ns; 7 packets a second: a fraction that no clock can hold.
    for (rate, expected) in [
        (json!({"rate_bps": 512_000_000_u64}), &(|k: u64| k * 22_968_750) as &dyn Fn(u64) -> u64),
        (json!({"packets_per_second": 7}), &|k| k * 1_000_000_000_000 / 7),
    ] {
        let mut fields = json!({"payload_bytes": 1470, "packets": 2000});
        fields.as_object_mut().unwrap().extend(rate.as_object().unwrap().clone());
        let calls = run(&mut source(fields), &mut RecordingHost::new(1), |_| Duration::ZERO);
        let sent: Vec<_> = calls.iter().filter(|(_, number)| *number > 0).collect();
        assert_eq!(sent.len(), 2000);
        for (k, (time, number)) in sent.iter().enumerate() {
            assert_eq!((time.as_ps(), *number), (5_000_000 + expected(k as u64), 1));
        }
    }
}

#[test]
fn a_source_that_is_called_late_sends_what_is_due_and_keeps_its_schedule() {
    let mut source = source(json!({"payload_bytes": 100, "packets_per_second": 10_000, "packets": 1000}));
    let calls =
        run(
            &mut source,
            &mut RecordingHost::new(1),
            |call| {
                if call == 3 {
                    Duration::from_ms(20)
                } else {
                    Duration::ZERO
                }
            },
        );
    let largest = calls.iter().map(|(_, number)| *number).max().unwrap();
    assert_eq!(largest, MOST_PER_CALL as usize);
    assert_eq!(calls.iter().map(|(_, number)| number).sum::<usize>(), 1000);
    let last_sent = calls.iter().rev().find(|(_, number)| *number > 0).unwrap().0;
    assert_eq!(last_sent, Time::from_ns(5_000) + Duration::from_us(99_900));
}

#[test]
fn a_source_that_cannot_keep_up_ends_in_time_and_says_so() {
    let mut source =
        source(json!({"payload_bytes": 100, "packets_per_second": 100_000, "duration_ps": 50_000_000_000_u64}));
    let calls = run(&mut source, &mut RecordingHost::new(1), |call| Duration::from_ms(call as u64));
    let sent = calls.iter().map(|(_, number)| number).sum::<usize>();
    assert!(sent < 5000, "{sent}");
    let over = calls[calls.len() - 1].0 - Time::from_ns(5_000);
    assert!(over < Duration::from_ms(50) + GRACE + Duration::from_ms(3), "{over} is long after the end");
    let report = source.report(Time::from_ns(0)).to_string();
    assert!(report.contains("could not keep up"), "{report}");
    let behind = source.fell_behind().unwrap();
    // 5000 were due in its time.
    assert!((behind - (1.0 - sent as f64 / 5000.0)).abs() < 1e-3, "{behind} and {sent} sent");
}

#[test]
fn a_duration_ends_before_the_datagram_that_is_due_at_its_end() {
    let mut source =
        source(json!({"payload_bytes": 100, "packets_per_second": 1000, "duration_ps": 10_000_000_000_u64}));
    let calls = run(&mut source, &mut RecordingHost::new(1), |_| Duration::ZERO);
    assert_eq!(calls.iter().map(|(_, number)| number).sum::<usize>(), 10);
    assert!(source.finished());
}

#[test]
fn poisson_gaps_are_exponential_by_kolmogorov_and_smirnov() {
    let mut source =
        source(json!({"payload_bytes": 100, "packets_per_second": 1000, "process": "poisson", "packets": 20_000}));
    let calls = run(&mut source, &mut RecordingHost::new(42), |_| Duration::ZERO);
    let times: Vec<Time> = calls.iter().filter(|(_, number)| *number > 0).map(|(time, _)| *time).collect();
    let mut gaps: Vec<f64> = times.windows(2).map(|pair| pair[1].since(pair[0]).as_secs_f64() * 1000.0).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    // Five standard errors of the mean of 20,000 exponential gaps.
    assert!((mean - 1.0).abs() < 5.0 / (gaps.len() as f64).sqrt(), "mean {mean}");
    gaps.sort_by(f64::total_cmp);
    let count = gaps.len() as f64;
    let distance = gaps
        .iter()
        .enumerate()
        .map(|(rank, gap)| {
            let theory = 1.0 - (-gap).exp();
            (theory - rank as f64 / count).abs().max(((rank + 1) as f64 / count - theory).abs())
        })
        .fold(0.0, f64::max);
    // The critical value at the 0.1 % level is 1.95 / sqrt(n).
    assert!(distance < 1.95 / count.sqrt(), "distance {distance}");
}

fn due_times(source: &mut UdpSource, seed: u64) -> Vec<u64> {
    let calls = run(source, &mut RecordingHost::new(seed), |_| Duration::ZERO);
    calls.iter().flat_map(|(time, number)| std::iter::repeat_n(time.as_ps() - 5_000_000, *number)).collect()
}

#[test]
fn a_trace_is_played_to_the_picosecond_and_ends_or_begins_anew() {
    let trace = json!({"trace": [[7, 100], [0, 50], [1_000_003, 8]]});
    let mut once = source(json!({"process": null, "trace": trace["trace"]}));
    assert_eq!(due_times(&mut once, 1), [7, 7, 1_000_010]);
    assert_eq!((once.finished(), &once.report(Time::ZERO)["flows"][0]["bytes"]), (true, &json!(158)));
    let mut twice = source(json!({"process": null, "trace": trace["trace"], "repeat": true, "packets": 5}));
    assert_eq!(due_times(&mut twice, 1), [7, 7, 1_000_010, 1_000_017, 1_000_017]);
}

#[test]
fn the_process_of_sizes_does_not_shift_the_gaps() {
    let gap = json!({"distribution": "gamma", "shape": 2.0, "scale": 1e9});
    let size = json!({"distribution": "exponential", "mean": 400.0});
    let mut even = source(json!({"process": null, "gap_ps": gap, "payload_bytes": 100, "packets": 500}));
    let mut varied = source(json!({"process": null, "gap_ps": gap, "size_bytes": size, "packets": 500}));
    let times = due_times(&mut even, 3);
    assert_eq!(times, due_times(&mut varied, 3));
    assert_ne!(
        times,
        due_times(&mut source(json!({"process": null, "gap_ps": gap, "payload_bytes": 100, "packets": 500})), 4)
    );
}

#[test]
fn a_source_on_time_reports_no_gap_errors_and_the_rate_it_was_asked_for() {
    let mut source = source(json!({"payload_bytes": 100, "packets_per_second": 1000, "packets": 100}));
    due_times(&mut source, 1);
    let told = &source.report(Time::ZERO)["flows"][0]["pacing"];
    assert_eq!((&told["gap_error_ps"]["max"], &told["kept_up"]), (&json!(0), &json!(true)));
    assert_eq!((&told["requested_rate_bps"], &told["achieved_rate_bps"]), (&json!(800_000.0), &json!(800_000.0)));
}

#[test]
fn contradictions_are_refused_with_the_fields() {
    let refusal = |fields: Value| {
        let mut object = json!({"to": "10.0.0.2", "port": 9, "flow": 3, "packets": 5});
        object.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value::<UdpSourceConfig>(object).unwrap_err().to_string()
    };
    let gap = json!({"distribution": "constant", "value": 1e9});
    let told = refusal(json!({"payload_bytes": 100, "gap_ps": gap, "rate_bps": 5}));
    assert!(told.ends_with("is needed; rate_bps and gap_ps were given"), "{told}");
    assert!(refusal(json!({"gap_ps": gap})).contains("payload_bytes, size_bytes, trace is needed; none was given"));
    assert!(
        refusal(json!({"payload_bytes": 100, "gap_ps": gap, "dscp": 64})).contains("dscp is 64; allowed is 0 to 63")
    );
    assert!(refusal(json!({"trace": [[0, 100]], "repeat": true})).contains("trace (all gaps) is 0"));
    assert!(refusal(json!({"payload_bytes": 100, "gap_ps": gap, "repeat": true})).contains("repeat is there without"));
    assert!(refusal(json!({"payload_bytes": 100, "unpaced": true, "exact": false})).contains("unpaced and exact were"));
    assert!(refusal(json!({"payload_bytes": 100, "gap_ps": gap, "process": "poisson"})).contains("gap_ps and process"));
    assert!(refusal(json!({"trace": [[0, 7]]})).contains("trace (size) is 7; allowed is 8 to 65507"));
}

#[test]
fn a_datagram_that_the_host_refuses_takes_no_sequence_number() {
    let mut source = source(json!({"payload_bytes": 100, "packets_per_second": 1000, "packets": 4}));
    let mut host = RecordingHost::new(1);
    source.handle(Time::ZERO, Event::Start, &mut host);
    host.refuse_datagrams(HostError::Full);
    source.handle(Time::from_ns(1_000_000), Event::Timer, &mut host);
    host.accept_datagrams();
    source.handle(Time::from_ns(2_000_000), Event::Timer, &mut host);
    let sequences: Vec<u32> = host.take_datagrams().iter().map(|sent| Header::parse(sent).unwrap().sequence).collect();
    assert_eq!(sequences, [0, 1]);
    let report = source.report(Time::ZERO);
    assert_eq!(report["flows"][0]["packets"], 2);
    assert_eq!(report["flows"][0]["errors"], json!(["a datagram was not sent: the host's send buffer was full"]));
}

#[test]
fn only_a_fast_source_lets_datagrams_gather_and_no_exact_one() {
    let slack = |rate: u64, exact: bool| {
        source(json!({"payload_bytes": 1470, "packets": 1, "packets_per_second": rate, "exact": exact})).slack()
    };
    assert_eq!((slack(1000, false), slack(43_500, false)), (Duration::ZERO, GATHER));
    assert_eq!(slack(43_500, true), Duration::ZERO);
}

#[test]
fn gaps_are_those_of_the_moments_at_which_datagrams_were_handed_over() {
    let mut source = source(json!({"payload_bytes": 100, "packets_per_second": 1000, "packets": 3}));
    let mut host = RecordingHost::new(1);
    for (call, handed_over_us) in [(0, 10), (1, 1015), (2, 2010)] {
        let begun = Time::from_ns(handed_over_us * 1000);
        host.hand_over(Handover { begun, ended: begun + Duration::from_us(3) });
        let event = if call == 0 { Event::Start } else { Event::Timer };
        source.handle(Time::from_ns(call * 1_000_000), event, &mut host);
    }
    let told = &source.report(Time::ZERO)["flows"][0]["pacing"];
    assert_eq!((&told["gap_error_ps"]["count"], &told["gap_error_ps"]["max"]), (&json!(2), &json!(5_000_000)));
    assert_eq!(told["lateness_ps"]["min"], 10_000_000);
}

#[test]
fn datagrams_of_one_burst_share_the_time_that_handing_it_over_took() {
    let mut source = source(json!({"payload_bytes": 100, "packets_per_second": 10_000, "packets": 4}));
    let mut host = RecordingHost::new(1);
    source.handle(Time::ZERO, Event::Start, &mut host);
    let begun = Time::from_ns(300_000);
    host.hand_over(Handover { begun, ended: begun + Duration::from_us(30) });
    source.handle(begun, Event::Timer, &mut host);
    let errors = &source.report(Time::ZERO)["flows"][0]["pacing"]["gap_error_ps"];
    // 300 us instead of 100, then 10 us instead of 100, twice.
    assert_eq!((&errors["max"], &errors["min"]), (&json!(200_000_000), &json!(90_000_000)));
}

fn unpaced(fields: Value) -> UdpSource {
    let mut object = json!({"to": "10.0.0.2", "port": 9, "flow": 3, "unpaced": true, "payload_bytes": 100});
    object.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    UdpSource::new(serde_json::from_value(object).unwrap())
}

#[test]
fn an_unpaced_source_offers_what_the_host_takes_and_loses_nothing_to_a_full_one() {
    let mut source = unpaced(json!({"packets": 200}));
    let mut host = RecordingHost::new(1);
    source.handle(Time::ZERO, Event::Start, &mut host);
    assert_eq!(host.take_datagrams().len(), MOST_PER_CALL as usize);
    host.refuse_datagrams(HostError::Full);
    let mut now = source.deadline().unwrap();
    source.handle(now, Event::Timer, &mut host);
    assert_eq!((host.take_datagrams().len(), source.deadline()), (0, Some(now + UNPACED_WAIT)));
    host.accept_datagrams();
    let mut sequences = Vec::new();
    while let Some(deadline) = source.deadline() {
        assert!(deadline > now, "time stands still");
        now = deadline;
        source.handle(now, Event::Timer, &mut host);
        sequences.extend(host.take_datagrams().iter().map(|sent| Header::parse(sent).unwrap().sequence));
    }
    assert_eq!(sequences, (64..200).collect::<Vec<u32>>());
    let row = &source.report(now)["flows"][0];
    assert_eq!((&row["packets"], &row["errors"], &row["pacing"]), (&json!(200), &json!([]), &Value::Null));
}

#[test]
fn a_datagram_that_may_not_be_fragmented_ends_the_source_before_anything_is_sent() {
    for fields in [json!({"packets_per_second": 100}), json!({"unpaced": true})] {
        let mut object = json!({"to": "10.0.0.2", "port": 9, "flow": 3, "payload_bytes": 3000, "packets": 50});
        object.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let mut source = UdpSource::new(serde_json::from_value(object).unwrap());
        let mut host = RecordingHost::new(1);
        host.refuse_datagrams(HostError::WouldFragment(3000));
        source.handle(Time::ZERO, Event::Start, &mut host);
        assert!(source.finished());
        let told = source.report(Time::ZERO)["flows"][0]["errors"][0].to_string();
        assert!(told.contains("3000 bytes of payload exceeds the MTU"), "{told}");
    }
}

#[test]
fn datagrams_that_come_back_are_told_with_their_number_and_times() {
    let mut source = source(json!({"payload_bytes": 100, "packets_per_second": 10, "packets": 30}));
    let mut host = RecordingHost::new(1);
    source.handle(Time::ZERO, Event::Start, &mut host);
    let back = || Event::Returned { socket: SocketId(1), error: HostError::Refused, datagrams: 2 };
    source.handle(Time::from_ns(50_000_000), back(), &mut host);
    source.handle(Time::from_ns(250_000_000), back(), &mut host);
    assert_eq!(
        source.report(Time::ZERO)["flows"][0]["errors"],
        json!([
            "nobody listened at 10.0.0.2:9: a datagram came back (4 times)",
            "datagrams came back between 0.050 s and 0.250 s after the start"
        ])
    );
}

#[test]
fn datagrams_carry_the_receivers_time_where_its_clock_is_another() {
    let offset = json!({"payload_bytes": 100, "packets_per_second": 10, "packets": 1, "clock_offset_ps": 5_000_000});
    let mut source = source(offset);
    let mut host = RecordingHost::new(1);
    source.handle(Time::from_ns(1000), Event::Start, &mut host);
    let sent = host.take_datagrams();
    assert_eq!(Header::parse(&sent[0]).unwrap().sent, Some(Stamp(6000)));
}
