//! Tests of the configuration: the documented form, every complaint word for word, and writing and reading back.

mod complaints;

use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::wear::budget::BudgetChoice;
use crate::wear::endurance::Rating;
use complaints::{IN_THE_EXAMPLE, OF_WHOLE_TEXTS};

const EXAMPLE: &str = r#"
[cache]
path = "/var/lib/larder/cache.img"   # a file or a block device
size = "2GiB"                        # created (preallocated) where a file is absent
block_size = "4KiB"

[control]
socket = "/run/larder/larder.sock"
allocator = "eci"                    # larder where it is left out
epoch = "10m"

[[tenant]]
name = "db"
quota = "1GiB"                       # optional
write_policy = "auto"                # auto | wt | ro
replacement = "s3-fifo"              # as the allocator has it where both are left out
admission = "nth:3"

[[tenant.volume]]
name = "db-root"
backing = "/srv/db.img"
nbd = "unix:/run/larder/db-root.sock"

[[tenant]]
name = "web"

[[tenant.volume]]
name = "web-root"
backing = "nbd+unix:///web?socket=/run/web.sock"
nbd = "tcp:127.0.0.1:10809"
"#;

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(Path::new("larder.toml"), Path::new(""), text)
}

/// The example with one of its lines (named by how it starts) replaced.
fn example_with(line: &str, replacement: &str) -> String {
    assert_eq!(EXAMPLE.lines().filter(|l| l.starts_with(line)).count(), 1, "{line} names one line");
    let replace = |l: &'static str| if l.starts_with(line) { replacement.to_owned() } else { l.to_owned() };
    EXAMPLE.lines().map(replace).collect::<Vec<_>>().join("\n")
}

/// What is said about a text: the complaint, then the remedy.
fn said(text: &str) -> String {
    let error = parse(text).expect_err("the text is wrong");
    format!("{error}\nhelp: {}", error.help())
}

#[test]
fn what_is_lost_is_written_beside_the_cache_and_never_on_a_device() {
    let of = |path: &str, key: &str| {
        let tenant = "[[tenant]]\nname = \"a\"\n[[tenant.volume]]\nname = \"v\"\nbacking = \"/b\"\nnbd = \"unix:/s\"\n";
        let text = format!("[cache]\npath = \"{path}\"\nsize = \"1MiB\"\n[control]\n{key}\n{tenant}");
        let config = Config::parse(Path::new("larder.toml"), Path::new("/etc"), &text).expect("valid");
        config.loss_file().display().to_string()
    };
    assert_eq!(of("/srv/cache.img", ""), "/srv/cache.img.loss.json");
    assert_eq!(of("/dev/disk/by-id/x", ""), "/var/lib/larder/dev-disk-by-id-x.loss.json");
    assert_eq!(of("/dev/sda", "loss_file = \"here.json\""), "/etc/here.json");
}

#[test]
fn the_documented_form_is_understood() {
    let config = parse(EXAMPLE).expect("valid");
    assert_eq!(config.cache.path, Path::new("/var/lib/larder/cache.img"));
    assert_eq!(
        (config.cache.size_bytes, config.cache.block_bytes, config.cache.blocks()),
        (2 << 30, 4096, 524_288)
    );
    assert_eq!(config.control.allocator, AllocatorChoice::Eci);
    assert_eq!(config.control.epoch, Duration::from_secs(600));
    let [db, web] = &config.tenants[..] else { panic!("two tenants") };
    assert_eq!(
        (db.name.as_str(), db.quota_bytes, db.write_policy),
        ("db", Some(1 << 30), PolicyChoice::Auto)
    );
    assert_eq!((db.caching.map(|it| it.to_string()).as_deref(), web.caching), (Some("s3-fifo+nth:3"), None));
    assert_eq!(db.volumes[0].backing, BackingConfig::Path("/srv/db.img".into()));
    assert_eq!(db.volumes[0].nbd, Some(ListenAddress::Unix("/run/larder/db-root.sock".into())));
    assert_eq!(
        web.volumes[0].backing,
        BackingConfig::Nbd("nbd+unix:///web?socket=/run/web.sock".parse().expect("a URI"))
    );
    assert_eq!(web.volumes[0].nbd, Some(ListenAddress::Tcp("127.0.0.1:10809".parse().expect("address"))));
}

#[test]
fn what_is_wanted_for_a_tenant_is_judged() {
    let of = |line: &str| parse(&example_with("quota", line)).map(|config| config.tenants[0].goals);
    let goals =
        GoalsConfig { weight: 2.0, latency: Some(Duration::from_micros(700)), ..GoalsConfig::default() };
    assert_eq!(of("weight = 2\nlatency = \"700us\"").ok(), Some(goals));
    for (line, expected) in [
        ("weight = 0", "\"weight\" must be a number above 0"),
        ("share = \"1\"", "\"share\" must be a number above 0"),
        ("latency = \"0ms\"", "no request takes no time"),
        ("latency = \"1ms\"\niops = 5", "a tenant is promised a latency or IOPS, not both"),
        ("max = \"1KiB\"", "1KiB is less than a block"),
    ] {
        let said = of(line).expect_err("wrong").to_string();
        assert!(said.contains(expected), "{said}");
    }
    let cold = "[cache]\npath = \"c\"\nsize = 8192\nkeep = false\n[control]\nwrite_back = true\n";
    assert!(said(cold).contains("write-back would lose data with a cache that is not kept"));
}

#[test]
fn what_is_left_out_has_its_default() {
    let text = "[cache]\npath = \"c\"\nsize = 8192\n[[tenant]]\nname = \"a\"\n\
        [[tenant.volume]]\nname = \"v\"\nbacking = \"b\"\nnbd = \"unix:s\"\n";
    let config = Config::parse(Path::new("larder.toml"), Path::new("/etc/larder"), text).expect("valid");
    assert_eq!(
        config.cache,
        CacheConfig {
            path: "/etc/larder/c".into(),
            size_bytes: 8192,
            block_bytes: 4096,
            keep: true,
            endurance: None,
            bypass_slow: true,
        }
    );
    let control = ControlConfig {
        socket: "/run/larder/larder.sock".into(),
        socket_group: None,
        allocator: AllocatorChoice::Larder,
        epoch: Duration::from_secs(600),
        min_blocks: 1000,
        write_threshold: 0.5,
        write_back: false,
        write_budget: BudgetChoice::Unlimited,
        reactors: None,
        poll: None,
        loss_file: None,
    };
    assert_eq!(config.control, control);
    assert_eq!((config.tenants[0].quota_bytes, config.tenants[0].write_policy), (None, PolicyChoice::Auto));
    assert_eq!(config.tenants[0].volumes[0].nbd, Some(ListenAddress::Unix("/etc/larder/s".into())));
}

#[test]
fn a_group_has_a_name_or_a_number() {
    let group = |text| {
        let control = format!("[control]\nsocket_group = \"{text}\"\n");
        parse(&EXAMPLE.replacen("[control]\n", &control, 1)).map(|config| config.control.socket_group)
    };
    let name = SocketGroup::Name("libvirt-qemu".into());
    assert_eq!(group("libvirt-qemu").expect("valid"), Some(name));
    assert_eq!(group("64055").expect("valid"), Some(SocketGroup::Number(64_055)));
    for none in ["", "4294967295", "99999999999"] {
        let error = group(none).expect_err("no group");
        assert!(error.to_string().contains(&format!("{none:?} is no group")), "{error}");
        assert!(error.help().contains("getent group"), "{}", error.help());
    }
}

#[test]
fn a_directory_is_no_configuration() {
    let error = Config::load(Path::new("/tmp")).expect_err("a directory");
    assert_eq!(error.help(), "name a file with --config, such as /tmp/larder.toml");
}

#[test]
fn export_uris_can_be_pasted() {
    let uri = |volume: &VolumeConfig| volume.export_uri().expect("it is served over NBD").to_string();
    let mut volume = parse(EXAMPLE).expect("valid").tenants[0].volumes[0].clone();
    assert_eq!(uri(&volume), "nbd+unix:///db-root?socket=/run/larder/db-root.sock");
    volume.nbd = Some(ListenAddress::Unix("/run/a b&c".into()));
    assert_eq!(uri(&volume), "nbd+unix:///db-root?socket=/run/a%20b%26c");
    volume.nbd = Some(ListenAddress::Tcp("[::1]:10809".parse().expect("address")));
    assert_eq!(uri(&volume), "nbd://[::1]:10809/db-root");
}

#[test]
fn complaints_say_what_where_and_how_to_mend() {
    for (line, replacement, expected) in IN_THE_EXAMPLE {
        assert_eq!(said(&example_with(line, replacement)), *expected, "for {replacement}");
    }
    for (text, expected) in OF_WHOLE_TEXTS {
        assert_eq!(said(text), *expected, "for {text}");
    }
}

#[test]
fn a_file_gives_its_directory_to_relative_paths() {
    let directory = tempfile::tempdir().expect("tempdir");
    let file = directory.path().join("larder.toml");
    fs::write(&file, example_with("path", "path = \"./cache.img\"")).expect("writable");
    assert_eq!(Config::load(&file).expect("valid").cache.path, directory.path().join("cache.img"));
}

#[test]
fn a_missing_file_is_named() {
    let error = Config::load(Path::new("/nonexistent/larder.toml")).expect_err("no such file");
    assert_eq!(
        format!("{error}\nhelp: {}", error.help()),
        "cannot read the configuration: /nonexistent/larder.toml: No such file or directory (os error 2)\n\
         help: name an existing file with --config, or create /nonexistent/larder.toml"
    );
}

fn any_path() -> impl Strategy<Value = PathBuf> {
    "(/[a-zA-Z0-9 \"\\\\'é#=._-]{1,12}){1,3}".prop_map(|path| Path::new(&path).components().collect())
}

fn any_listen() -> impl Strategy<Value = ListenAddress> {
    let tcp = |(ip, port): (std::net::IpAddr, u16)| ListenAddress::Tcp((ip, port).into());
    prop_oneof![any_path().prop_map(ListenAddress::Unix), (any::<std::net::IpAddr>(), 1_u16..).prop_map(tcp)]
}

fn any_backing() -> impl Strategy<Value = BackingConfig> {
    let uri = |(port, name): (u16, String)| {
        BackingConfig::Nbd(Uri { address: Address::Tcp { host: "fd00::7".into(), port }, export: name })
    };
    prop_oneof![any_path().prop_map(BackingConfig::Path), (1_u16.., "[a-zé?# ]{0,8}").prop_map(uri)]
}

/// Over NBD, over vhost-user, and over ublk.
type Ways = (Option<ListenAddress>, bool, bool);

/// Served in one way, or in several.
fn any_ways() -> impl Strategy<Value = Ways> {
    prop_oneof![
        any_listen().prop_map(|nbd| (Some(nbd), false, false)),
        any_listen().prop_map(|nbd| (Some(nbd), true, true)),
        Just((None, true, false)),
        Just((None, false, true)),
    ]
}

fn any_tenants() -> impl Strategy<Value = Vec<TenantConfig>> {
    let policy = (0_usize..4).prop_map(|i| PolicyChoice::NAMED[i].1);
    let volumes = prop::collection::vec((any_backing(), any_ways()), 1..3);
    let caching =
        prop::sample::select(vec!["lru", "larc", "arc+nth:3", "clock:2+prob:0.25", "w-tinylfu+bloom"])
            .prop_map(|name| name.parse::<CachingSpec>().expect("a known name"));
    let caching = prop::option::of(caching);
    let tenant = (prop::option::of(4096_u64..1 << 19), policy, caching, volumes);
    prop::collection::vec(tenant, 1..4)
        .prop_map(|tenants| tenants.into_iter().enumerate().map(name_tenant).collect())
}

type Unnamed = (Option<u64>, PolicyChoice, Option<CachingSpec>, Vec<(BackingConfig, Ways)>);

fn name_tenant((index, (quota_bytes, write_policy, caching, volumes)): (usize, Unnamed)) -> TenantConfig {
    let ordered = index == 1;
    let volume = |(v, (backing, (nbd, vhost, ublk))): (usize, (BackingConfig, Ways))| VolumeConfig {
        name: format!("t{index}.v_{v}"),
        backing,
        nbd,
        vhost_user: vhost.then(|| format!("/run/guests/{index} {v}.vhost").into()),
        ublk,
        ordered,
    };
    let volumes: Vec<_> = volumes.into_iter().enumerate().map(volume).collect();
    let dirty = DirtyLimits { rest: index as u8, max: 50, age: 7 };
    let goals = match index {
        0 => GoalsConfig::default(),
        1 => GoalsConfig {
            weight: 2.5,
            latency: Some(Duration::from_micros(1500)),
            max_bytes: Some(1 << 20),
            ..GoalsConfig::default()
        },
        _ => GoalsConfig { share: Some(3.0), iops: Some(0.1), ..GoalsConfig::default() },
    };
    let population =
        [None, Some(Population::OnDemand), Some(Population::Batched)][(index + volumes.len()) % 3];
    TenantConfig {
        name: format!("t-{index}"),
        quota_bytes,
        write_policy,
        dirty,
        caching,
        population,
        goals,
        volumes,
    }
}

fn any_budget(millis: u64) -> BudgetChoice {
    match millis % 3 {
        0 => BudgetChoice::Unlimited,
        1 => BudgetChoice::Bytes { bytes: millis << 20, period: Duration::from_millis(millis) },
        _ => BudgetChoice::Rated(Endurance { rating: Rating::DriveWrites(0.5), years: 3.0 }),
    }
}

fn any_config() -> impl Strategy<Value = Config> {
    let cache = (any_path(), 4_u32..1 << 20, 0_u32..6, any::<bool>(), prop::option::of(1..5000_u32));
    let cache = cache.prop_map(|(path, units, shift, keep, tenths)| CacheConfig {
        path,
        size_bytes: u64::from(units) * (512 << 10),
        block_bytes: 4096 << shift,
        keep,
        endurance: tenths.map(|tenths| Endurance {
            rating: match keep {
                true => Rating::Terabytes(f64::from(tenths) / 10.0),
                false => Rating::DriveWrites(f64::from(tenths) / 10.0),
            },
            years: f64::from(tenths),
        }),
        bypass_slow: shift != 1,
    });
    let group = prop_oneof![
        "[a-z][a-z0-9_ä'\"-]{0,12}".prop_map(SocketGroup::Name),
        (0..u32::MAX).prop_map(SocketGroup::Number),
    ];
    let control = (
        any_path(),
        prop::option::of(group),
        any::<bool>(),
        1_000_u64..9_000_000,
        any::<u32>(),
        0.0..=1.0,
        prop::option::of(1..257_u32),
    );
    let control =
        control.prop_map(|(socket, socket_group, eci, millis, min_blocks, write_threshold, reactors)| {
            ControlConfig {
                socket,
                socket_group,
                allocator: AllocatorChoice::NAMED[usize::from(eci)].1,
                epoch: Duration::from_millis(millis),
                min_blocks,
                write_threshold,
                write_back: min_blocks % 3 == 0,
                write_budget: any_budget(millis),
                reactors,
                poll: (min_blocks % 5 > 0).then(|| Duration::from_micros(millis % 1001)),
                loss_file: (min_blocks % 2 == 0).then(|| "/var/lib/larder/x.json".into()),
            }
        });
    (cache, control, any_tenants()).prop_map(|(cache, mut control, tenants)| {
        control.reactors = control.reactors.map(|reactors| if cache.keep { 1 } else { reactors });
        control.write_back &= cache.keep;
        let mut tenants = tenants;
        for tenant in
            tenants.iter_mut().filter(|tenant| !cache.keep && tenant.write_policy == PolicyChoice::WriteBack)
        {
            tenant.write_policy = PolicyChoice::Auto;
        }
        let volumes = tenants.iter_mut().flat_map(|tenant| &mut tenant.volumes);
        volumes.for_each(|volume| volume.ordered &= cache.keep);
        Config { cache, control, api: None, tenants }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn what_we_write_reads_back(config in any_config()) {
        let text = config.to_string();
        match parse(&text) {
            Ok(read) => prop_assert_eq!(read, config),
            // Random paths may meet, and small quotas may be below a large block: then that is what is said.
            Err(error) => {
                let said = error.to_string();
                let expected = [" is used twice", " is the cache device", " is the control socket", "is less than a block"];
                prop_assert!(expected.iter().any(|known| said.contains(known)), "{}", said);
            }
        }
    }

    #[test]
    fn no_text_panics(line in 0_usize..28, junk in "\\PC{0,20}") {
        let mut lines: Vec<&str> = EXAMPLE.lines().collect();
        lines[line] = &junk;
        if let Err(error) = parse(&lines.join("\n")) {
            prop_assert!(error.to_string().starts_with("larder.toml:"));
        }
    }
}

#[test]
fn the_control_socket_is_known_whatever_else_the_file_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("larder.toml");
    let asked = |text: &str| {
        fs::write(&path, text).expect("a file");
        Config::control_socket(&path).map_err(|error| error.to_string())
    };
    assert_eq!(
        asked("[control]\nsocket = \"run/l.sock\"\nepoch = \"never\""),
        Ok(folder.path().join("run/l.sock"))
    );
    assert_eq!(asked("[cache]"), Ok(DEFAULT_CONTROL_SOCKET.into()));
    assert!(asked("[control").expect_err("no TOML").contains("not valid TOML"));
    assert!(asked("control = { socket = 5 }").is_err());
}
