//! Text: how wide it is, and how to make it fit.
//!
//! The font is Noto Sans (SIL Open Font License), built into the program. A reader of an SVG may have another one: its letters may
//! be up to [`RESERVE`] wider than measured before anything runs into its neighbour.

use std::sync::LazyLock;

use ttf_parser::{Face, GlyphId};

/// Thickness of the letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    Regular,
    Bold,
}

/// The room that layout keeps for text, over what it measures: DejaVu Sans is about this much wider than Noto Sans.
pub(crate) const RESERVE: f64 = 1.15;

static FACES: LazyLock<[Face<'static>; 2]> = LazyLock::new(|| {
    [notosans::REGULAR_TTF, notosans::BOLD_TTF]
        .map(|font| Face::parse(font, 0).expect("the fonts of the program are sound: a test reads them"))
});

pub(crate) fn face(weight: Weight) -> &'static Face<'static> {
    match weight {
        Weight::Regular => &FACES[0],
        Weight::Bold => &FACES[1],
    }
}

/// The glyphs of a text and how far each moves the pen, in units of the font. A letter that the font lacks is its empty box.
pub(crate) fn glyphs(text: &str, weight: Weight) -> impl Iterator<Item = (GlyphId, u16)> + '_ {
    let face = face(weight);
    text.chars().map(move |letter| {
        let glyph = face.glyph_index(letter).unwrap_or(GlyphId(0));
        (glyph, face.glyph_hor_advance(glyph).unwrap_or(0))
    })
}

/// Pixels per unit of the font, at a font size in pixels.
pub(crate) fn scale(size: f64, weight: Weight) -> f64 {
    size / f64::from(face(weight).units_per_em())
}

/// Width of a text in pixels, without kerning.
pub(crate) fn width(text: &str, size: f64, weight: Weight) -> f64 {
    let advance: u64 = glyphs(text, weight).map(|(_, advance)| u64::from(advance)).sum();
    advance as f64 * scale(size, weight)
}

/// The room to keep for a text.
pub(crate) fn room(text: &str, size: f64, weight: Weight) -> f64 {
    width(text, size, weight) * RESERVE
}

/// The text in one line, cut with "…" where it would need more than `limit` pixels.
pub(crate) fn fit(text: &str, limit: f64, size: f64, weight: Weight) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let per_unit = scale(size, weight) * RESERVE;
    let dots: u16 = glyphs("…", weight).map(|(_, advance)| advance).sum();
    let (mut used, mut cut) = (0u64, 0);
    for ((at, letter), (_, advance)) in line.char_indices().zip(glyphs(&line, weight)) {
        used += u64::from(advance);
        if used as f64 * per_unit > limit {
            return format!("{}…", line[..cut].trim_end());
        }
        if (used + u64::from(dots)) as f64 * per_unit <= limit {
            cut = at + letter.len_utf8();
        }
    }
    line
}

/// The text in at most `lines` lines of `limit` pixels, broken between words; the last is cut with "…" if need be.
pub(crate) fn wrap(text: &str, limit: f64, size: f64, weight: Weight, lines: usize) -> Vec<String> {
    let mut out = Vec::new();
    let mut words: &[&str] = &text.split_whitespace().collect::<Vec<_>>();
    while !words.is_empty() && out.len() < lines {
        let last = out.len() + 1 == lines;
        let taken = if last { words.len() } else { words_that_fit(words, limit, size, weight) };
        out.push(fit(&words[..taken].join(" "), limit, size, weight));
        words = &words[taken..];
    }
    out
}

/// How many of the words fit in one line; at least one.
fn words_that_fit(words: &[&str], limit: f64, size: f64, weight: Weight) -> usize {
    let mut used = 0.0;
    let fitting = words.iter().take_while(|word| {
        used += room(word, size, weight);
        let fits = used <= limit;
        used += room(" ", size, weight);
        fits
    });
    fitting.count().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_fonts_know_the_letters_a_chart_needs() {
        for weight in [Weight::Regular, Weight::Bold] {
            for letter in "AZaz09%.,·–…×/()<>&\"'µäßøλЖ".chars() {
                let glyph = face(weight).glyph_index(letter);
                assert!(glyph.is_some_and(|glyph| glyph.0 != 0), "{letter} {weight:?}");
            }
        }
    }

    #[test]
    fn width_grows_with_size_and_length() {
        let one = width("m", 10.0, Weight::Regular);
        assert!((5.0..12.0).contains(&one), "{one}");
        assert_eq!(width("mm", 10.0, Weight::Regular), 2.0 * one);
        assert_eq!(width("m", 20.0, Weight::Regular), 2.0 * one);
        assert!(width("m", 10.0, Weight::Bold) >= one);
        assert_eq!(width("", 10.0, Weight::Regular), 0.0);
    }

    #[test]
    fn what_fits_is_left_alone_but_for_its_blanks() {
        assert_eq!(fit(" S3-FIFO\n wb ", 500.0, 13.0, Weight::Regular), "S3-FIFO wb");
        assert_eq!(fit("anything", 0.0, 13.0, Weight::Regular), "…");
    }

    #[test]
    fn titles_break_between_words() {
        let lines = wrap("hit ratio and writes to the SSD over cache size", 130.0, 13.0, Weight::Regular, 9);
        assert!(lines.len() > 2, "{lines:?}");
        assert_eq!(lines.join(" "), "hit ratio and writes to the SSD over cache size");
        let cut = wrap("hit ratio and writes to the SSD over cache size", 130.0, 13.0, Weight::Regular, 2);
        assert_eq!(cut.len(), 2);
        assert_eq!(cut[0], lines[0]);
        assert!(cut[1].ends_with('…'));
        assert!(wrap("  ", 100.0, 13.0, Weight::Regular, 2).is_empty());
    }

    proptest::proptest! {
        #[test]
        fn lines_keep_their_limit(text in "\\PC{0,80}", limit in 20.0f64..400.0) {
            for line in wrap(&text, limit, 13.0, Weight::Bold, 3) {
                proptest::prop_assert!(room(&line, 13.0, Weight::Bold) <= limit, "{line:?}");
            }
        }
    }
}
