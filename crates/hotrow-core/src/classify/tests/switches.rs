//! Tests the settings of the gateway that clients change in their sessions.

use super::*;
use crate::classify::SwitchValue;
use crate::pack_mode::PackMode;

fn set(switch: Switch, value: Option<SwitchValue>) -> Analysis {
    Analysis::Set(SwitchChange { switch, value, is_local: false })
}

fn pack(mode: PackMode) -> Analysis {
    set(Switch::Pack, Some(SwitchValue::Pack(mode)))
}

fn reads(from_replica: bool) -> Analysis {
    set(Switch::Reads, Some(SwitchValue::ReadsFromReplica(from_replica)))
}

#[test]
fn the_setting_hotrow_pack() {
    for on in [
        "set hotrow.pack = on",
        "SET hotrow.pack TO 'true'",
        "set session hotrow.pack=1",
        "set \"hotrow\".pack = yes",
    ] {
        assert_eq!(analyse(on), pack(PackMode::On), "{on}");
    }
    for off in ["set hotrow.pack = off;", "set Hotrow.Pack to FALSE", "set hotrow.pack = '0'"] {
        assert_eq!(analyse(off), pack(PackMode::Off), "{off}");
    }
    let shadow = pack(PackMode::Shadow);
    assert_eq!(analyse("set hotrow.pack = Shadow"), shadow);
    assert_eq!(analyse("set hotrow.pack to 'shadow'"), shadow);
    assert_eq!(analyse("set hotrow.pack to default"), set(Switch::Pack, None));
    assert_eq!(analyse("reset hotrow.pack"), Analysis::Reset(Switch::Pack));
    assert_eq!(analyse("show hotrow.pack"), Analysis::Show(Switch::Pack));
    let local =
        SwitchChange { switch: Switch::Pack, value: Some(SwitchValue::Pack(PackMode::Off)), is_local: true };
    assert_eq!(analyse("set local hotrow.pack = off"), Analysis::Set(local));
    for wrong in ["set hotrow.pack = maybe", "set local hotrow.pack = maybe", "set hotrow.pack to 2"] {
        assert_eq!(analyse(wrong), Analysis::SetWrong(Switch::Pack), "{wrong}");
    }
}

#[test]
fn the_setting_hotrow_reads() {
    for (text, analysis) in [
        ("set hotrow.reads = replica", reads(true)),
        ("SET Hotrow.Reads TO 'Replica';", reads(true)),
        ("set session hotrow.reads=primary", reads(false)),
        ("set hotrow.reads = on", Analysis::SetWrong(Switch::Reads)),
        ("set hotrow.reads = 'any'", Analysis::SetWrong(Switch::Reads)),
        ("set local hotrow.reads = any", Analysis::SetWrong(Switch::Reads)),
        ("set hotrow.reads to default", set(Switch::Reads, None)),
        ("reset hotrow.reads", Analysis::Reset(Switch::Reads)),
        ("show hotrow.reads", Analysis::Show(Switch::Reads)),
    ] {
        assert_eq!(analyse(text), analysis, "{text}");
    }
}
