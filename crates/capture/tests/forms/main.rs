//! The same packets in every form of file give the same numbers; a file that ends or breaks says where.

mod write;

use std::io::{Cursor, Write};

use flate2::{write::GzEncoder, Compression};
use twinnet_capture::{analyze, AnalyzeError, Column, Ending, OpenError, Options, Reader, Report, Table};
use write::{packets, pcap, pcapng, Order};

fn report(bytes: &[u8]) -> Result<Report, AnalyzeError> {
    analyze(Box::new(Cursor::new(bytes.to_vec())), &Options::default(), &mut |_| true)
}

fn whole(table: &Table, name: &str) -> Vec<i64> {
    match table.column(name) {
        Some(Column::Whole(values)) => values.clone(),
        other => panic!("{name}: {other:?}"),
    }
}

fn zipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Time and bytes of a packet.
type Seen = (Option<i64>, Vec<u8>);

fn read(bytes: &[u8]) -> (Vec<Seen>, Ending) {
    let mut reader = Reader::new(Box::new(Cursor::new(bytes.to_vec()))).unwrap();
    let mut found = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        found.push((record.time_ns, record.bytes.to_vec()));
    }
    (found, reader.ending().cloned().unwrap())
}

fn forms() -> Vec<Vec<u8>> {
    let packets = packets();
    let mut forms = vec![pcapng(&packets)];
    for order in [Order::Little, Order::Big] {
        forms.extend([pcap(order, false, &packets), pcap(order, true, &packets)]);
    }
    forms
}

#[test]
fn every_form_gives_the_same_packets_and_numbers() {
    let expected: Vec<_> = packets().into_iter().map(|(time, bytes)| (i64::try_from(time).ok(), bytes)).collect();
    for form in forms() {
        for bytes in [form.clone(), zipped(&form)] {
            assert_eq!(read(&bytes), (expected.clone(), Ending::Whole));
            let report = report(&bytes).unwrap();
            assert_eq!(whole(&report.conversations, "packets"), [20]);
            assert_eq!(whole(&report.rtp_streams, "packets"), [20]);
            assert_eq!(whole(&report.capture, "duration_ns"), [190_000_000]);
            assert_eq!(report.notes, Vec::<String>::new());
        }
    }
}

#[test]
fn a_file_cut_anywhere_says_so_and_gives_the_packets_before() {
    let all = packets();
    for form in forms() {
        let mut last = 0;
        for length in 28..form.len() {
            let (found, ending) = read(&form[..length]);
            assert!(found.len() >= last && found.len() <= all.len());
            last = found.len();
            if ending != Ending::Whole {
                assert_eq!(ending, Ending::CutOff { packet: found.len() as u64 + 1 });
            }
            for ((_, bytes), (_, expected)) in found.iter().zip(&all) {
                assert_eq!(bytes, expected);
            }
        }
    }
    let cut = report(&forms()[1][..200]).unwrap();
    assert_eq!(cut.notes, ["the file is cut off in packet 2; the numbers are those of the packets before it"]);
}

#[test]
fn compressed_bytes_that_end_or_break_are_told() {
    let bytes = zipped(&forms()[1]);
    let (found, ending) = read(&bytes[..bytes.len() * 2 / 3]);
    assert_eq!(ending, Ending::CutOff { packet: found.len() as u64 + 1 });
    let mut broken = bytes.clone();
    let end = broken.len();
    broken[end - 6] ^= 0xff;
    let (found, ending) = read(&broken);
    assert!(found.len() <= 20 && matches!(ending, Ending::Damaged { .. }), "{ending:?}");
}

#[test]
fn impossible_records_end_the_reading_with_their_place() {
    let mut bytes = pcap(Order::Little, true, &packets());
    bytes[24 + 8..24 + 12].copy_from_slice(&[0xff; 4]);
    let (found, ending) = read(&bytes);
    assert!(found.is_empty());
    assert_eq!(
        ending.to_string(),
        "the file is damaged at byte 24, after packet 0: a packet claims 4294967295 \
        captured bytes, more than 16777216; the numbers are those of the packets before it"
    );
    let mut bytes = pcapng(&packets());
    let end = bytes.len() - 4;
    bytes[end] = 1;
    assert!(matches!(read(&bytes).1, Ending::Damaged { packets: 19, .. }));
}

#[test]
fn a_fraction_of_a_whole_second_is_carried_and_counted_and_one_of_two_is_damage() {
    let mut bytes = pcap(Order::Little, false, &packets());
    let (before, _) = read(&bytes);
    bytes[24 + 4..24 + 8].copy_from_slice(&1_000_000_u32.to_le_bytes());
    let (found, ending) = read(&bytes);
    assert_eq!((found.len(), ending), (20, Ending::Whole));
    assert_eq!(found[0].0.unwrap() - before[0].0.unwrap(), 1_000_000_000);
    let notes = report(&bytes).unwrap().notes;
    assert!(notes[0].starts_with("1 packet has a time stamp whose fraction is a second or more"), "{notes:?}");
    bytes[24 + 4..24 + 8].copy_from_slice(&2_000_000_u32.to_le_bytes());
    assert!(matches!(read(&bytes).1, Ending::Damaged { packets: 0, .. }));
}

#[test]
fn packets_without_time_are_counted_but_not_timed() {
    let order = Order::Little;
    let mut bytes = [write::section(order), write::interface(order, 1, 6, 0)].concat();
    for (_, packet) in packets() {
        bytes.extend(write::simple(order, &packet));
    }
    let report = report(&bytes).unwrap();
    assert_eq!(whole(&report.conversations, "packets"), [20]);
    assert!(whole(&report.rtp_streams, "packets").is_empty());
    assert!(report.notes[0].starts_with("20 packets have no time stamp"));
}

#[test]
fn link_types_that_are_not_known_are_refused_or_told() {
    let mut bytes = pcap(Order::Little, true, &packets());
    bytes[20] = 105;
    let error = report(&bytes).unwrap_err();
    assert!(matches!(error, AnalyzeError::Open(OpenError::LinkType(105))));
    let order = Order::Little;
    let mut bytes = [write::section(order), write::interface(order, 127, 6, 0)].concat();
    bytes.extend(write::enhanced(order, 0, 1, &[0; 60]));
    assert!(matches!(report(&bytes), Err(AnalyzeError::LinkType { packets: 1, link: 127 })));
    bytes.extend(write::interface(order, 1, 6, 0));
    bytes.extend(write::enhanced(order, 1, 2, &packets()[0].1));
    bytes.extend(write::enhanced(order, 9, 3, &packets()[0].1));
    let report = report(&bytes).unwrap();
    assert_eq!(whole(&report.conversations, "packets"), [1]);
    assert!(report.notes[0].contains("1 packets name an interface"), "{:?}", report.notes);
    assert!(report.notes[1].contains("link type that is not looked into (127)"), "{:?}", report.notes);
}

#[test]
fn what_is_no_capture_is_refused() {
    assert!(matches!(report(b""), Err(AnalyzeError::Open(OpenError::TooShort(0)))));
    assert!(matches!(report(b"\xd4\xc3\xb2\xa1"), Err(AnalyzeError::Open(OpenError::TooShort(4)))));
    let error = report(b"#!/bin/sh\n").unwrap_err();
    assert!(error.to_string().contains("which is no capture; pcap and pcapng are read"), "{error}");
    assert!(matches!(report(&zipped(b"hello, world")), Err(AnalyzeError::Open(OpenError::NoCapture(_)))));
    assert!(matches!(report(b"\x1f\x8b\x08\xff\xff\xff"), Err(AnalyzeError::Open(_))));
}

#[test]
fn a_clock_that_steps_back_is_told_with_its_place() {
    let mut packets = packets();
    packets[7].0 -= 5_000_000_000;
    let report = report(&pcap(Order::Little, true, &packets)).unwrap();
    assert!(
        report.notes[0].starts_with("time steps back 1 times, first at packet 8, by at most 4.99 s"),
        "{:?}",
        report.notes
    );
    let Some(Column::Text(notes)) = report.rtp_streams.column("notes") else { panic!() };
    assert!(notes[0].contains("clock steps back 1 times"), "{notes:?}");
}

#[test]
fn fragments_belong_to_their_conversation_and_make_one_packet_of_rtp() {
    let mut sent = Vec::new();
    for (index, (time, whole)) in packets().into_iter().enumerate() {
        // 24 bytes of the datagram go first, then the rest.
        let mut first = whole[..34 + 24].to_vec();
        let mut second = [&whole[..34], &whole[34 + 24..]].concat();
        for (part, place) in [(&mut first, [0x20, 0]), (&mut second, [0, 3])] {
            let total = (part.len() - 14) as u16;
            part[16..18].copy_from_slice(&total.to_be_bytes());
            part[18..20].copy_from_slice(&(index as u16).to_be_bytes());
            part[20..22].copy_from_slice(&place);
        }
        sent.extend([(time, first), (time + 1_000_000, second)]);
    }
    let all = report(&pcap(Order::Little, true, &sent)).unwrap();
    assert_eq!(whole(&all.conversations, "packets"), [40]);
    assert_eq!(whole(&all.conversations, "payload_bytes_a_to_b"), [20 * 40]);
    assert_eq!((whole(&all.rtp_streams, "packets"), whole(&all.rtp_streams, "lost")), (vec![20], vec![0]));
    sent.remove(5);
    let missing = report(&pcap(Order::Little, true, &sent)).unwrap();
    assert_eq!(whole(&missing.rtp_streams, "lost"), [1]);
    assert!(missing.notes[0].starts_with("1 datagrams of which not every fragment was seen"), "{:?}", missing.notes);
}

#[test]
fn conversations_beyond_the_limit_are_told() {
    let mut sent = packets();
    for (index, (_, packet)) in sent.iter_mut().enumerate() {
        packet[26 + 3] = index as u8;
    }
    let options = Options { most_conversations: 8, ..Options::default() };
    let bytes = pcap(Order::Big, false, &sent);
    let report = analyze(Box::new(Cursor::new(bytes)), &options, &mut |_| true).unwrap();
    assert_eq!(whole(&report.conversations, "packets").len(), 8);
    assert!(report.notes[0].starts_with("12 packets are of conversations beyond the first 8"), "{:?}", report.notes);
}
