//! The code that any bytes must not break: the messages between a prober and a listener of available bandwidth.

use twinnet_apps::BandwidthMessage;

/// Bytes by which each message begins.
const BEGIN: usize = 7;

/// Reads `bytes` as they are, and behind what every message begins with: few would get past that otherwise.
pub fn bandwidth_message(bytes: &[u8]) {
    read(bytes);
    let begun = BandwidthMessage::Hello { nonce: 0 }.emit();
    read(&[&begun[..BEGIN], bytes].concat());
}

/// Reads `bytes` as a datagram whole, and as the first bytes of a longer one. Nothing may panic; what is read is as
/// long as its kind allows, and comes back when it is written.
fn read(bytes: &[u8]) {
    for length in [bytes.len(), bytes.len() + 1472] {
        let Some(message) = BandwidthMessage::parse(bytes, length) else { continue };
        if let BandwidthMessage::Stamps(stamps) = &message {
            assert!(stamps.arrived_ns.len() <= 20);
        }
        let written = message.emit();
        assert!(written.len() <= 128, "no message is longer than a datagram that every host looks at");
        let again = BandwidthMessage::parse(&written, written.len());
        // Stamps are told in units of a power of two, so a second reading may choose a finer one, not other packets.
        match (&message, &again) {
            (BandwidthMessage::Stamps(first), Some(BandwidthMessage::Stamps(second))) => {
                assert_eq!((first.cookie, first.train, first.place), (second.cookie, second.train, second.place));
                let lost = |all: &[Option<u64>]| all.iter().map(Option::is_none).collect::<Vec<_>>();
                assert_eq!(lost(&first.arrived_ns), lost(&second.arrived_ns));
            }
            // A welcome whose two numbers differ, and any other, is itself.
            _ => assert_eq!(Some(message), again),
        }
    }
}
