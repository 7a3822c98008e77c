//! Disciplines against theory, on a hand-cranked link.

mod conservation;
mod drr;
mod fifo;
mod htb;
mod link;
mod priority;
mod tbf;
