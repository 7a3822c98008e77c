//! Disciplines against theory, on a hand-cranked link.

mod fifo;
mod htb;
mod link;
