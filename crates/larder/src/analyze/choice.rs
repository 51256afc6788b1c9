//! What may be chosen by name: write policies that have curves, pictures and where they go.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::str::FromStr;

use larder_locality::CurvePolicy;

/// Write policies as they are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteChoice {
    /// `all`.
    All,
    /// One.
    One(CurvePolicy),
}

impl FromStr for WriteChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text == "all" {
            return Ok(Self::All);
        }
        let known = CurvePolicy::ALL.into_iter().find(|policy| policy.as_str() == text);
        let names = CurvePolicy::ALL.map(CurvePolicy::as_str).join(", ");
        known.map(Self::One).ok_or_else(|| format!("{text} has no curves; there are {names}, all"))
    }
}

/// The policies of all choices, each once, in the order of [`CurvePolicy::ALL`].
pub fn write_policies(choices: &[WriteChoice]) -> Vec<CurvePolicy> {
    let is_chosen = |policy: &CurvePolicy| {
        choices.iter().any(|choice| *choice == WriteChoice::All || *choice == WriteChoice::One(*policy))
    };
    CurvePolicy::ALL.into_iter().filter(is_chosen).collect()
}

/// A picture of an analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Picture {
    /// Miss ratio over cache size: all accesses (TRD) beside reads (URD).
    Misses,
    /// Miss ratio over cache size by policy.
    Policies,
    /// SSD writes over cache size by policy.
    Writes,
    /// Writes of the backing over cache size by policy.
    Backing,
    /// Request classes over time.
    Classes,
    /// How many accesses have which reuse distance.
    Distances,
    /// Accesses over time and address.
    Map,
    /// Where most of the accesses went.
    Hot,
}

impl Picture {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Misses,
        Self::Policies,
        Self::Writes,
        Self::Backing,
        Self::Classes,
        Self::Distances,
        Self::Map,
        Self::Hot,
    ];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Misses => "misses",
            Self::Policies => "policies",
            Self::Writes => "writes",
            Self::Backing => "backing",
            Self::Classes => "classes",
            Self::Distances => "distances",
            Self::Map => "map",
            Self::Hot => "hot",
        }
    }
}

/// `FILE`, or `PICTURE=FILE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlotChoice {
    /// The one picture that is wanted; all where absent.
    pub picture: Option<Picture>,
    /// Where it goes, or what the names of all are made of.
    pub file: PathBuf,
}

impl PlotChoice {
    /// From what stands on the command line.
    pub fn new(text: &OsStr) -> Result<Self, String> {
        let bytes = text.as_bytes();
        let Some(at) = bytes.iter().position(|&byte| byte == b'=') else {
            return Ok(Self { picture: None, file: text.into() });
        };
        let (name, file) =
            (String::from_utf8_lossy(&bytes[..at]), OsString::from_vec(bytes[at + 1..].to_vec()));
        let picture = Picture::ALL.into_iter().find(|picture| picture.as_str() == name);
        let names = Picture::ALL.map(Picture::as_str).join(", ");
        let picture = picture.ok_or_else(|| format!("there is no picture {name}; there are {names}"))?;
        Ok(Self { picture: Some(picture), file: file.into() })
    }

    /// The pictures and their files, for a trace of this name; none where there is only one trace.
    ///
    /// `out.svg` gives `out-misses.svg`, and `out-web-misses.svg` for the trace `web` among others. `misses=out.svg` gives `out.svg`, and `out-web.svg`.
    pub fn files(&self, trace: Option<&str>) -> Vec<(Picture, PathBuf)> {
        match self.picture {
            Some(picture) => vec![(picture, self.named([trace, None]))],
            None => {
                let named = |picture: Picture| (picture, self.named([trace, Some(picture.as_str())]));
                Picture::ALL.map(named).into()
            }
        }
    }

    fn named(&self, parts: [Option<&str>; 2]) -> PathBuf {
        let mut name = self.file.file_stem().map_or_else(OsString::new, ToOwned::to_owned);
        parts.into_iter().flatten().for_each(|part| name.push(format!("-{part}")));
        name.push(".");
        name.push(self.file.extension().unwrap_or_default());
        self.file.with_file_name(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_policies_come_once_and_in_order() {
        let chosen = |text: &str| {
            let choices: Vec<_> = text.split(',').map(|name| name.parse().expect(name)).collect();
            write_policies(&choices).iter().map(|policy| policy.as_str()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(chosen("ro,wb,ro"), "wb ro");
        assert_eq!(chosen("ro,all"), "wb wt wt-noalloc ro batched");
        let error = "wo".parse::<WriteChoice>().expect_err("no curves");
        assert_eq!(error, "wo has no curves; there are wb, wt, wt-noalloc, ro, batched, all");
    }

    #[test]
    fn pictures_are_named_after_the_file() {
        let files = |text: &str, trace| {
            let files = PlotChoice::new(OsStr::new(text)).expect(text).files(trace);
            files.into_iter().map(|(_, file)| file.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(files("a/x.v2.svg", None)[..2], ["a/x.v2-misses.svg", "a/x.v2-policies.svg"]);
        assert_eq!(files("x.png", Some("web"))[7], "x-web-hot.png");
        assert_eq!(files("map=a/x.png", None), ["a/x.png"]);
        assert_eq!(files("map=x.png", Some("web")), ["x-web.png"]);
        let error = PlotChoice::new(OsStr::new("mpa=x.png")).expect_err("no such picture");
        assert!(error.starts_with("there is no picture mpa; there are misses, "), "{error}");
    }
}
