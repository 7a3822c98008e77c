//! Values of fields as text: numbers, addresses, masks, flags; read and written.

use std::net::{Ipv4Addr, Ipv6Addr};

use twinnet_packet::mac_of;

use super::field::{Format, MatchField};

const TCP_FLAGS: [&str; 8] = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"];

/// Names of fragment states with value and mask, as Open vSwitch has them.
const FRAGMENTS: [(&str, u128, u128); 5] =
    [("no", 0, 3), ("yes", 1, 1), ("first", 1, 3), ("later", 3, 3), ("not_later", 0, 2)];

/// The reserved port of the switch's own host.
pub(super) const PORT_LOCAL: u32 = 0xffff_fffe;
/// Back by the port that the frame came in by.
pub(super) const PORT_IN_PORT: u32 = 0xffff_fff8;
/// Through the tables (packet-out).
pub(super) const PORT_TABLE: u32 = 0xffff_fff9;
/// As a learning switch does.
pub(super) const PORT_NORMAL: u32 = 0xffff_fffa;
/// All ports that flood.
pub(super) const PORT_FLOOD: u32 = 0xffff_fffb;
/// All ports.
pub(super) const PORT_ALL: u32 = 0xffff_fffc;
/// The controllers.
pub(super) const PORT_CONTROLLER: u32 = 0xffff_fffd;
/// Any port, or none.
pub(super) const PORT_ANY: u32 = 0xffff_ffff;
/// The largest number of an ordinary port (OpenFlow 1.3 `OFPP_MAX`).
pub(super) const PORT_MAX: u32 = 0xffff_ff00;

/// A decimal or, after `0x`, hexadecimal number.
pub(super) fn number(text: &str) -> Option<u128> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hexadecimal) => (hexadecimal, 16),
        None => (text, 10),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u128::from_str_radix(digits, radix).ok()
}

fn mac(text: &str) -> Option<u128> {
    let mut value = 0;
    let mut parts = 0;
    for part in text.split(':') {
        let plain = (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        value = value << 8 | u128::from(u8::from_str_radix(part, 16).ok().filter(|_| plain)?);
        parts += 1;
    }
    (parts == 6).then_some(value)
}

/// A port number: an ordinary one, or `LOCAL`.
pub(super) fn port(text: &str) -> Option<u32> {
    if text.eq_ignore_ascii_case("local") {
        return Some(PORT_LOCAL);
    }
    let value = u32::try_from(number(text)?).ok()?;
    ((1..=PORT_MAX).contains(&value) || value == PORT_LOCAL).then_some(value)
}

fn tcp_flag(name: &str) -> Option<u128> {
    TCP_FLAGS.iter().position(|known| known.eq_ignore_ascii_case(name)).map(|bit| 1 << bit)
}

/// Flags by name: `+syn-ack` (these set, those not) or `syn|ack` (these set, no others).
fn tcp_flags(text: &str) -> Option<(u128, u128)> {
    if !text.starts_with(['+', '-']) {
        let flags = text.split('|').try_fold(0, |flags, name| Some(flags | tcp_flag(name)?))?;
        return Some((flags, 0xfff));
    }
    let (mut value, mut mask) = (0, 0);
    let mut rest = text;
    while let Some(sign) = rest.chars().next() {
        let name_end = rest[1..].find(['+', '-']).map_or(rest.len(), |at| at + 1);
        let bit = tcp_flag(&rest[1..name_end])?;
        mask |= bit;
        if sign == '+' {
            value |= bit;
        }
        rest = &rest[name_end..];
    }
    Some((value, mask))
}

/// One value, or one mask, of the field.
fn plain(field: &MatchField, text: &str) -> Option<u128> {
    match field.format {
        Format::Mac => mac(text),
        Format::Ipv4 => text.parse::<Ipv4Addr>().ok().map(|address| u128::from(address.to_bits())),
        Format::Ipv6 => text.parse::<Ipv6Addr>().ok().map(Ipv6Addr::to_bits),
        Format::Port => port(text).map(u128::from),
        Format::TypeOfService => number(text).filter(|value| value & 3 == 0 && *value <= 0xff).map(|value| value >> 2),
        _ => number(text).filter(|&value| value <= field.maximum()),
    }
}

/// Reads a value, perhaps with a mask after `/`, as value and mask of the field.
pub(super) fn parse(field: &MatchField, text: &str) -> Option<(u128, u128)> {
    let all = field.field.maximum();
    match field.format {
        Format::Fragment => {
            if let Some(&(_, value, mask)) = FRAGMENTS.iter().find(|(name, ..)| text.eq_ignore_ascii_case(name)) {
                return Some((value, mask));
            }
        }
        Format::TcpFlags => {
            if let Some(found) = tcp_flags(text) {
                return Some(found);
            }
        }
        _ => {}
    }
    let Some((value, mask)) = text.split_once('/') else { return plain(field, text).map(|value| (value, all)) };
    if !field.maskable {
        return None;
    }
    let value = plain(field, value)?;
    let prefix = matches!(field.format, Format::Ipv4 | Format::Ipv6).then(|| mask.parse::<u32>().ok()).flatten();
    let mask = match prefix {
        Some(length) => {
            let bits = field.field.bits();
            if length > bits {
                return None;
            }
            all & !all.checked_shr(length).unwrap_or(0)
        }
        None => plain(field, mask)?,
    };
    Some((value, mask))
}

/// Returns the values that may be written for the field.
pub(super) fn allowed(field: &MatchField) -> String {
    let mask = if field.maskable { ", with an optional /mask" } else { "" };
    match field.format {
        Format::Mac => format!("an Ethernet address such as 00:00:00:00:00:01{mask}"),
        Format::Ipv4 => "an IPv4 address such as 10.0.0.4, with an optional /prefix or /mask".to_owned(),
        Format::Ipv6 => "an IPv6 address such as fd00::4, with an optional /prefix or /mask".to_owned(),
        Format::Port => format!("a port number from 1 to {PORT_MAX}, or LOCAL"),
        Format::TcpFlags => {
            format!(
                "flags such as +syn-ack or syn|ack ({}), or a number up to 0xfff with an optional /mask",
                TCP_FLAGS.join(", ")
            )
        }
        Format::Fragment => "no, yes, first, later or not_later".to_owned(),
        Format::TypeOfService => {
            "a number from 0 to 252 that is a multiple of 4 (the two ECN bits are nw_ecn)".to_owned()
        }
        Format::VlanOrNone => "a number from 0 to 4095, or 0xffff for untagged".to_owned(),
        Format::Decimal | Format::VlanPriority => format!("a number from 0 to {}{mask}", field.maximum()),
        Format::Hexadecimal => format!("a number from 0 to {:#x}{mask}", field.maximum()),
    }
}

/// Writes a number as C's `%#x` does: zero without a prefix.
pub(super) fn hexadecimal(value: u128) -> String {
    if value == 0 {
        return "0".to_owned();
    }
    format!("{value:#x}")
}

fn named_flags(flags: u128) -> impl Iterator<Item = &'static str> {
    TCP_FLAGS.into_iter().enumerate().filter(move |(bit, _)| flags >> bit & 1 == 1).map(|(_, name)| name)
}

/// Writes a value.
pub(super) fn show(format: Format, value: u128) -> String {
    match format {
        Format::Mac => {
            let [a, b, c, d, e, f] = mac_of(value);
            format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
        }
        Format::Ipv4 => Ipv4Addr::from_bits(u32::try_from(value).unwrap_or(u32::MAX)).to_string(),
        Format::Ipv6 => Ipv6Addr::from_bits(value).to_string(),
        Format::Port => show_port(u32::try_from(value).unwrap_or(u32::MAX)),
        Format::TypeOfService => (value << 2).to_string(),
        Format::Hexadecimal => hexadecimal(value),
        Format::TcpFlags if (1..=0xff).contains(&value) => named_flags(value).collect::<Vec<_>>().join("|"),
        Format::TcpFlags => format!("{value:#05x}"),
        Format::Decimal | Format::VlanPriority | Format::VlanOrNone | Format::Fragment => value.to_string(),
    }
}

/// Writes a port number.
pub(super) fn show_port(port: u32) -> String {
    if port == PORT_LOCAL {
        return "LOCAL".to_owned();
    }
    port.to_string()
}

/// Writes a value and, unless all of the field counts, its mask.
pub(super) fn show_masked(field: &MatchField, value: u128, mask: u128) -> String {
    let bits = field.field.bits();
    if let Some((name, ..)) =
        FRAGMENTS.iter().find(|entry| field.format == Format::Fragment && (entry.1, entry.2) == (value, mask))
    {
        return (*name).to_owned();
    }
    if mask == field.field.maximum() {
        return show(field.format, value);
    }
    match field.format {
        Format::Ipv4 | Format::Ipv6 => {
            let address = show(field.format, value);
            let ones = mask.count_ones();
            if mask == field.field.maximum() & !field.field.maximum().checked_shr(ones).unwrap_or(0) {
                return format!("{address}/{ones}");
            }
            debug_assert!(ones < bits);
            format!("{address}/{}", show(field.format, mask))
        }
        Format::Mac => format!("{}/{}", show(field.format, value), show(field.format, mask)),
        Format::TcpFlags if mask <= 0xff => {
            let sign = |name| if named_flags(value).any(|set| set == name) { '+' } else { '-' };
            named_flags(mask).map(|name| format!("{}{name}", sign(name))).collect()
        }
        Format::Hexadecimal => format!("{}/{}", hexadecimal(value), hexadecimal(mask)),
        _ => format!("{value:#x}/{mask:#x}"),
    }
}
