# Waits until the program that has started the server ends, which closes the standard input. Then it kills the server and removes
# its folder, the first argument. The process ID can belong to another process by then, so its command line must name the folder.
cat > /dev/null
if pid=$(cat "$1/pid" 2> /dev/null) && grep -aqsF "$1/data" "/proc/$pid/cmdline"; then
    kill -9 "$pid"
    while [ -e "/proc/$pid" ]; do sleep 0.01; done
fi
rm -rf "$1"
