//! The ramp: shades from light to dark that stand for more and more.
//!
//! The colours are those of viridis (Smith and van der Walt, 2015; CC0), the wrong way round for paper: little ink for little. Their
//! lightness falls evenly, so that a grey print and colour-blind eyes see the same order.

use crate::scene::Colour;

/// Nine colours of viridis at equal distances.
const ANCHORS: [Colour; 9] = [
    Colour(0xfd, 0xe7, 0x25),
    Colour(0xad, 0xdc, 0x30),
    Colour(0x5e, 0xc9, 0x62),
    Colour(0x28, 0xae, 0x80),
    Colour(0x21, 0x91, 0x8c),
    Colour(0x2c, 0x72, 0x8e),
    Colour(0x3b, 0x52, 0x8b),
    Colour(0x47, 0x2d, 0x7b),
    Colour(0x44, 0x01, 0x54),
];

/// The shade for a share of the way from the lightest, 0, to the darkest, 1.
pub(crate) fn shade(share: f64) -> Colour {
    let place = share.clamp(0.0, 1.0) * (ANCHORS.len() - 1) as f64;
    let below = (place as usize).min(ANCHORS.len() - 2);
    let (Colour(r, g, b), Colour(s, h, c)) = (ANCHORS[below], ANCHORS[below + 1]);
    let mixed =
        |a: u8, b: u8| (f64::from(a) + (place - below as f64) * (f64::from(b) - f64::from(a))).round() as u8;
    Colour(mixed(r, s), mixed(g, h), mixed(b, c))
}
