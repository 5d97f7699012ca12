# The function that both packages call after an upgrade. deb.sh and rpm.sh put it into the place of @HAND_OVER@.
# Restarting would disconnect each client in the middle of its work and refuse new ones for a moment. With SIGUSR2, the running
# process starts the new program, which takes over the listening sockets: no connection attempt is refused, and a client is
# disconnected only when it has nothing under way. If the new program fails to start, the old process continues. A gateway
# that does not run stays stopped.
hand_over() {
    old=$(systemctl show --property MainPID --value hotrow.service)
    [ "${old:-0}" -gt 1 ] || return 0
    kill -s USR2 "$old" || return 0
    # The gateway itself ends a successor that does not serve after 30 s.
    for _ in $(seq 40); do
        [ "$(systemctl show --property MainPID --value hotrow.service)" = "$old" ] || return 0
        sleep 1
    done
    echo "hotrow: the running gateway has not handed over to the new program, and continues." >&2
    echo "hotrow: the reason is in: journalctl -u hotrow. Then: kill -USR2 $old" >&2
}
