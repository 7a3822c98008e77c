//! The switch: a multi-table flow pipeline with an exact-match cache, and stand-alone learning.
