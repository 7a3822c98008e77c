//! All that bytes from a connection meet: nothing of it may panic, and what is read is written and read again as
//! the same.

use twinnet_openflow::{nicira, v10, v13, Framer, FramingError, FRAMER_BYTES};

/// Takes `bytes` for a message of each version, and for a stream.
pub fn connection(bytes: &[u8]) {
    version_1_3(bytes);
    version_1_0(bytes);
    stream(bytes);
}

fn version_1_3(bytes: &[u8]) {
    let (header, message) = match v13::Message::decode(bytes) {
        Ok(decoded) => decoded,
        Err(error) => {
            let _ = (error.to_string(), v13::Error::refusing(&error, bytes));
            return;
        }
    };
    if let v13::Message::Experimenter(experimenter) = &message {
        if let Ok(inner) = nicira::Message::decode_experimenter(experimenter) {
            assert_eq!(nicira::Message::decode_experimenter(&inner.to_experimenter()), Ok(inner));
        }
    }
    let mut out = Vec::new();
    if message.encode(header.xid, &mut out).is_ok() {
        assert_eq!(v13::Message::decode(&out).map(|(_, again)| again), Ok(message));
    }
}

fn version_1_0(bytes: &[u8]) {
    let (header, message) = match v10::Message::decode(bytes) {
        Ok(decoded) => decoded,
        Err(error) => {
            let _ = (error.to_string(), v10::Error::refusing(&error, bytes));
            return;
        }
    };
    match &message {
        v10::Message::Vendor(vendor) => {
            if let Ok(inner) = nicira::Message::decode(&vendor.data) {
                assert_eq!(nicira::Message::decode(&inner.to_vendor().data), Ok(inner));
            }
        }
        v10::Message::StatsRequest(v10::Statistics { body: v10::RequestBody::Vendor(vendor), .. }) => {
            if let Ok(inner) = nicira::StatsRequest::decode(&vendor.data) {
                assert_eq!(nicira::StatsRequest::decode(&inner.encode()), Ok(inner));
            }
        }
        v10::Message::StatsReply(v10::Statistics { body: v10::ReplyBody::Vendor(vendor), .. }) => {
            if let Ok(inner) = nicira::StatsReply::decode(&vendor.data) {
                assert_eq!(nicira::StatsReply::decode(&inner.encode()), Ok(inner));
            }
        }
        _ => {}
    }
    let mut out = Vec::new();
    if message.encode(header.xid, &mut out).is_ok() {
        assert_eq!(v10::Message::decode(&out).map(|(_, again)| again), Ok(message));
    }
}

/// Pushes `bytes` in pieces; every byte comes out once, in order, until the stream cannot be split any further.
fn stream(bytes: &[u8]) {
    let mut framer = Framer::new();
    let mut out = 0;
    for piece in bytes.chunks(usize::from(bytes.first().copied().unwrap_or(0)) + 1) {
        assert_eq!(framer.push(piece), piece.len());
        loop {
            match framer.next_message() {
                Ok(Some(message)) => {
                    assert_eq!(message, &bytes[out..out + message.len()]);
                    out += message.len();
                }
                Ok(None) => break,
                Err(FramingError::Version { .. }) => out = bytes.len().min(out + passed_over(&bytes[out..])),
                Err(FramingError::ShortLength { .. }) => return,
            }
        }
        assert!(framer.pending() <= FRAMER_BYTES);
    }
    assert_eq!(out + framer.pending(), bytes.len());
}

/// Bytes of the message at the beginning of `bytes`.
fn passed_over(bytes: &[u8]) -> usize {
    usize::from(u16::from_be_bytes([bytes[2], bytes[3]]))
}
