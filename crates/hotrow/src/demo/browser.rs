//! Opens an address in the user's browser, if the system has a command for it. Without one, nothing happens: the demo has printed
//! the address.

use std::process::{Command, Stdio};

/// The commands of macOS and of Linux desktops.
const COMMANDS: [&str; 2] =
    if cfg!(target_os = "macos") { ["open", "xdg-open"] } else { ["xdg-open", "open"] };

/// Opens the address without waiting for the browser.
pub fn open(url: &str) {
    // Without a display, xdg-open would start a browser in the terminal.
    let has_display = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    if !cfg!(target_os = "macos") && !has_display {
        return;
    }
    for command in COMMANDS {
        let mut command = Command::new(command);
        command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if command.spawn().is_ok() {
            return;
        }
    }
}
