//! The means that a machine may lack. A test that cannot run fails, unless `TWINNET_LACKS` names what is lacking:
//! nothing is passed over by accident.

/// Tells that a test cannot run for `why`, because the machine lacks `means`.
///
/// # Panics
/// Unless `TWINNET_LACKS`, a list with commas, has `means` in it.
pub fn lacking(means: &str, why: &str) {
    let lacks = std::env::var("TWINNET_LACKS").unwrap_or_default();
    assert!(
        lacks.split(',').any(|one| one.trim() == means),
        "{why}: this test cannot run. Where the machine lacks {means}, say TWINNET_LACKS={means}; run as root where \
         it does not"
    );
    eprintln!("left out for lack of {means}: {why}");
}
