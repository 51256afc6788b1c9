//! What smartctl printed for real disks, cut down to what matters (serial numbers left away).

use super::*;

/// smartctl 7.1, Intel 660p.
const NVME: &str = r#"{"json_format_version":[1,0],"smartctl":{"version":[7,1],"exit_status":0},
    "device":{"name":"/dev/nvme0","type":"nvme","protocol":"NVMe"},"model_name":"INTEL SSDPEKNW010T8",
    "user_capacity":{"blocks":2000409264,"bytes":1024209543168},"logical_block_size":512,"smart_status":{"passed":true,"nvme":{"value":0}},
    "nvme_smart_health_information_log":{"critical_warning":0,"temperature":36,"available_spare":100,"available_spare_threshold":10,"percentage_used":0,
    "data_units_read":9511859,"data_units_written":7773431,"host_reads":111303174,"host_writes":83170961,"controller_busy_time":3060,"power_cycles":266,
    "power_on_hours":2401,"unsafe_shutdowns":43,"media_errors":0,"num_err_log_entries":0},"power_cycle_count":266,"power_on_time":{"hours":2401}}"#;

/// smartctl 7.5, a SATA disk with attributes, and the endurance as smartctl works it out.
const SATA: &str = r#"{"json_format_version":[1,0],"smartctl":{"version":[7,5],"exit_status":0},"device":{"type":"sat","protocol":"ATA"},"logical_block_size":512,
    "smart_status":{"passed":true},"ata_smart_attributes":{"revision":1,"table":[
    {"id":235,"name":"POR_Recovery_Count","value":99,"worst":99,"thresh":0,"raw":{"value":69,"string":"69"}},
    {"id":241,"name":"Total_LBAs_Written","value":99,"worst":99,"thresh":0,"raw":{"value":493358643370,"string":"493358643370"}}]},
    "power_on_time":{"hours":36682},"power_cycle_count":354,"endurance_used":{"current_percent":70}}"#;

fn wear(text: &str) -> Result<DiskWear, SmartError> {
    understood(Path::new("/dev/x"), text)
}

#[test]
fn an_nvme_disk_tells_percent_and_units() {
    let wear = wear(NVME).expect("it tells");
    assert_eq!((wear.used_ratio, wear.written_bytes), (Some(0.0), Some(7_773_431 * 512_000)));
    assert_eq!((wear.power_on_seconds, wear.healthy), (Some(2401 * 3600), Some(true)));
    assert_eq!(
        (wear.model.as_deref(), wear.size_bytes),
        (Some("INTEL SSDPEKNW010T8"), Some(1_024_209_543_168))
    );
}

#[test]
fn a_sata_disk_tells_by_attributes_or_better_by_statistics() {
    let told = wear(SATA).expect("it tells");
    assert_eq!((told.used_ratio, told.written_bytes), (Some(0.7), Some(493_358_643_370 * 512)));
    let statistics = r#""ata_device_statistics":{"pages":[
        {"number":1,"name":"General Statistics","table":[{"offset":24,"name":"Logical Sectors Written","size":6,"value":1000,"flags":{"valid":true}}]},
        {"number":7,"name":"Solid State Device Statistics","table":[{"offset":8,"name":"Percentage Used Endurance Indicator","size":1,"value":3,"flags":{"valid":true}}]}]},
        "power_on_time""#;
    let told = wear(&SATA.replacen("\"power_on_time\"", statistics, 1)).expect("it tells");
    assert_eq!((told.used_ratio, told.written_bytes), (Some(0.03), Some(512_000)));
    let invalid = statistics.replace("true", "false");
    let told = wear(&SATA.replacen("\"power_on_time\"", &invalid, 1)).expect("it tells");
    assert_eq!((told.used_ratio, told.written_bytes), (Some(0.7), Some(493_358_643_370 * 512)));
    for (name, unit) in [("Host_Writes_32MiB", 32 << 20), ("Lifetime_Writes_GiB", 1 << 30)] {
        let told =
            wear(&SATA.replace("Total_LBAs_Written", name).replace("493358643370", "100")).expect("it tells");
        assert_eq!(told.written_bytes, Some(100 * unit), "{name}");
    }
}

#[test]
fn disks_that_tell_nothing_say_why() {
    let refused = r#"{"smartctl":{"messages":[{"string":"Smartctl open device: /dev/x failed: Permission denied","severity":"error"}],"exit_status":2}}"#;
    let error = wear(refused).expect_err("nothing").to_string();
    assert_eq!(error, "smartctl: /dev/x: Smartctl open device: /dev/x failed: Permission denied");
    let turning =
        r#"{"smartctl":{"exit_status":0},"smart_status":{"passed":true},"power_on_time":{"hours":5}}"#;
    assert_eq!(wear(turning).expect_err("nothing").to_string(), "/dev/x tells nothing of its wear");
    assert!(matches!(wear("Usage: smartctl"), Err(SmartError::Garbled { .. })));
}
