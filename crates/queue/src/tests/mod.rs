//! Disciplines against theory, on a hand-cranked link.

mod cbq;
mod classify;
mod codel;
mod conservation;
mod delay;
mod drr;
mod fifo;
mod fq_codel;
mod htb;
mod link;
mod marks;
mod pie;
mod priority;
mod red;
mod sfq;
mod speed;
mod tbf;
