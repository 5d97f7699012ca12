<?php
// One hot row with Doctrine: php doctrine.php setup|autocommit|transaction URL WORKERS SECONDS

require 'Doctrine/ORM/autoload.php';
require __DIR__ . '/load.php';

use Doctrine\DBAL\DriverManager;
use Doctrine\DBAL\LockMode;
use Doctrine\ORM\EntityManager;
use Doctrine\ORM\Mapping as ORM;
use Doctrine\ORM\ORMSetup;
use Doctrine\ORM\Tools\SchemaTool;

#[ORM\Entity]
#[ORM\Table(name: 'item')]
class Item
{
    #[ORM\Id]
    #[ORM\GeneratedValue]
    #[ORM\Column(type: 'integer')]
    public ?int $id = null;

    #[ORM\Column(type: 'integer')]
    public int $sold = 0;
}

function connect(string $url): EntityManager
{
    $parts = parse_url($url);
    $connection = DriverManager::getConnection([
        'driver' => 'pdo_pgsql',
        'host' => $parts['host'],
        'port' => $parts['port'],
        'user' => $parts['user'],
        'dbname' => substr($parts['path'], 1),
    ]);
    return new EntityManager($connection, ORMSetup::createAttributeMetadataConfiguration([__DIR__]));
}

function setup(EntityManager $manager): void
{
    (new SchemaTool($manager))->createSchema([$manager->getClassMetadata(Item::class)]);
    $manager->persist(new Item());
    $manager->flush();
}

function autocommit(EntityManager $manager): void
{
    $manager->createQuery('UPDATE Item i SET i.sold = i.sold + 1 WHERE i.id = 1')->execute();
}

function transaction(EntityManager $manager): void
{
    $manager->wrapInTransaction(function () use ($manager) {
        $item = $manager->find(Item::class, 1, LockMode::PESSIMISTIC_WRITE);
        $item->sold++;
    });
}

[, $variant, $url] = $argv;
if ($variant === 'setup') {
    setup(connect($url));
} else {
    $start = function () use ($variant, $url) {
        $manager = connect($url);
        return fn () => $variant($manager);
    };
    run($start, (int) $argv[3], (float) $argv[4]);
}
