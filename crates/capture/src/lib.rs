//! Captures read and understood: conversations, throughput, RTP, TCP, and packets matched between captures. Opens
//! nothing itself and reads no clock: a capture is any [`std::io::Read`], read once from begin to end in memory
//! that does not grow with its length. A thread reads ahead of the analysis.
//!
//! A fault of a file becomes an annotation beside the numbers, never a wrong number: see [`Ending`] and
//! [`Report::notes`]. Left out: reassembly of TCP, SCTP, IPsec, decryption, link types other than those that
//! [`LinkType`] names.

mod analysis;
mod conversations;
mod decode;
mod fingerprint;
mod fragments;
mod link;
mod matching;
mod packet_list;
mod pcap;
mod pcapng;
mod reader;
mod report;
mod rtp;
mod rtp_finder;
mod rtp_payload;
mod source;
mod table;
mod tcp;
mod throughput;

pub use analysis::{analyze, analyze_joined, AnalyzeError, Options};
pub use decode::{decode, Layer, Transport, LAYERS};
pub use fingerprint::{Fingerprint, Prints};
pub use link::LinkType;
pub use matching::{match_captures, MatchError, Matched};
pub use reader::{Ending, OpenError, Reader, Record};
pub use report::Report;
pub use table::{Column, Table};
