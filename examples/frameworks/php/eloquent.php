<?php
// One hot row with Laravel's Eloquent: php eloquent.php setup|autocommit|transaction URL WORKERS SECONDS

require 'Illuminate/Database/autoload.php';
require __DIR__ . '/load.php';

use Illuminate\Database\Capsule\Manager;
use Illuminate\Database\Eloquent\Model;
use Illuminate\Database\Schema\Blueprint;

class Item extends Model
{
    public $timestamps = false;
}

function connect(string $url): void
{
    $parts = parse_url($url);
    $manager = new Manager();
    $manager->addConnection([
        'driver' => 'pgsql',
        'host' => $parts['host'],
        'port' => $parts['port'],
        'username' => $parts['user'],
        'database' => substr($parts['path'], 1),
        'charset' => 'utf8',
        'schema' => 'public',
    ]);
    $manager->setAsGlobal();
    $manager->bootEloquent();
}

function setup(): void
{
    Manager::schema()->create('items', function (Blueprint $table) {
        $table->id();
        $table->integer('sold');
    });
    $item = new Item();
    $item->sold = 0;
    $item->save();
}

function autocommit(): void
{
    Item::whereKey(1)->increment('sold');
}

function transaction(): void
{
    Manager::connection()->transaction(function () {
        $item = Item::whereKey(1)->lockForUpdate()->firstOrFail();
        $item->sold++;
        $item->save();
    });
}

[, $variant, $url] = $argv;
if ($variant === 'setup') {
    connect($url);
    setup();
} else {
    $start = function () use ($variant, $url) {
        connect($url);
        return $variant;
    };
    run($start, (int) $argv[3], (float) $argv[4]);
}
