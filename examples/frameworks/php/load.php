<?php
// Repeats one update in many processes, one connection each, as PHP's process manager does.

const WARM_UP_SECONDS = 2;

/**
 * Forks the workers, and prints how many updates were acknowledged, and how many per second after the warm-up. In each worker,
 * $start connects and returns the update.
 */
function run(callable $start, int $workers, float $seconds): void
{
    $pipes = [];
    for ($number = 0; $number < $workers; $number++) {
        [$reader, $writer] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, STREAM_IPPROTO_IP);
        $pid = pcntl_fork();
        if ($pid === 0) {
            fwrite($writer, json_encode(work($start(), $seconds)));
            exit(0);
        }
        fclose($writer);
        $pipes[$pid] = $reader;
    }
    $results = [];
    foreach ($pipes as $pid => $reader) {
        $results[] = json_decode(stream_get_contents($reader), true);
        pcntl_waitpid($pid, $status);
        if (pcntl_wexitstatus($status) !== 0) {
            fwrite(STDERR, "a worker failed\n");
            exit(1);
        }
    }
    echo json_encode([
        'updates' => array_sum(array_column($results, 'updates')),
        'per_second' => array_sum(array_column($results, 'per_second')),
    ]), "\n";
}

/** The acknowledged updates of one worker, and their number per second after the warm-up. */
function work(callable $update, float $seconds): array
{
    $done = $before = 0;
    $started = microtime(true) + WARM_UP_SECONDS;
    $end = $started + $seconds;
    for ($now = 0; $now < $end; $now = microtime(true)) {
        $update();
        $done++;
        if ($now < $started) {
            $before = $done;
        }
    }
    return ['updates' => $done, 'per_second' => ($done - $before) / $seconds];
}
