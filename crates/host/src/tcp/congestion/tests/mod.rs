//! Algorithms against closed forms and on a path.

mod bbr;
mod cubic;
mod path;
