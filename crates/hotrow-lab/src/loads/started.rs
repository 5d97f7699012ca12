//! The programs of one run, and the run itself.

use super::mariadb::MariaDb;
use super::payments::Payments;
use super::peers::{Job, Peers};
use super::pgbouncer::PgBouncer;
use super::redis::Redis;
use super::{Kind, Peer, applications, connections, fleet, fresh, http};
use hotrow_bench::Error;
use hotrow_bench::child::Child;
use hotrow_bench::endpoint::Endpoint;
use hotrow_bench::gateway::Gateway;
use hotrow_bench::load::{Answers, Failure, NoFigure, Part};
use hotrow_bench::pgbench::Load;
use hotrow_bench::scenario::Protocol;
use hotrow_bench::testbed::{Later, OtherLoad, Testbed};
use hotrow_bench::verdict::Reading;
use hotrow_bench::watch::Counted;
use std::net::SocketAddr;

/// The programs of a run. Which of them run depends on its load.
#[derive(Debug)]
pub struct Started {
    kind: Kind,
    peers: Peers,
    protocol: Protocol,
    pub pgbouncer: Option<PgBouncer>,
    pub gateways: Vec<Gateway>,
    pub redis: Option<Redis>,
    pub payments: Option<Payments>,
    pub mariadb: Option<MariaDb>,
}

impl Started {
    /// Without programs so far.
    pub fn new(kind: Kind, peers: Peers, protocol: Protocol) -> Self {
        let gateways = Vec::new();
        Self { kind, peers, protocol, pgbouncer: None, gateways, redis: None, payments: None, mariadb: None }
    }

    /// The address for the clients.
    fn endpoint<'a>(&'a self, testbed: &'a Testbed, part: &Part) -> Result<&'a Endpoint, Failure> {
        match &self.pgbouncer {
            Some(pgbouncer) => Ok(&pgbouncer.endpoint),
            None => testbed.endpoint(part.run.technique.through, part.run.clients),
        }
    }

    /// The job of a program in `peers/`, which processes the orders that it enqueued before.
    fn job<'a>(&'a self, testbed: &'a Testbed, part: &'a Part, peer: Peer) -> Result<Job<'a>, Failure> {
        Ok(Job { peer, part, server: testbed.server(), endpoint: self.endpoint(testbed, part)? })
    }

    async fn make(&mut self, testbed: &Testbed, part: &Part) -> Result<Answers, NoFigure> {
        let answers = match self.kind {
            Kind::Pgbench => {
                let endpoint = self.endpoint(testbed, part)?;
                let load = Load { protocol: self.protocol, ..Load::of(part, endpoint, part.run.clients) };
                return testbed.pgbench.run(&load).await;
            }
            Kind::Fleet { .. } => {
                let gateways = self.gateways.iter().map(|gateway| &gateway.endpoint).cycle();
                let endpoints: Vec<_> = gateways.take(fleet::FLEET).collect();
                let endpoints = endpoints.try_into().map_err(|_| Failure("no gateway is running".into()))?;
                return fleet::run(&testbed.pgbench, endpoints, part).await;
            }
            Kind::Redis => {
                let Some(redis) = &self.redis else {
                    return Err(Failure("Redis is not running".into()).into());
                };
                return redis.reserve(part.run.clients, part.requests()).await;
            }
            Kind::FreshConnections => return fresh::run(testbed, part).await,
            Kind::Payments { gateway_dies } => return self.pay(part, gateway_dies).await,
            Kind::MariaDb(_) => match &self.mariadb {
                Some(mariadb) => mariadb.run(part).await,
                None => Err(Failure("MariaDB is not running".into())),
            },
            Kind::Applications(batching) => {
                applications::run(self.endpoint(testbed, part)?, batching, part).await
            }
            Kind::Peer(peer) => self.peers.work(&self.job(testbed, part, peer)?).await,
            Kind::Connections => connections::run(self.endpoint(testbed, part)?, part).await,
            Kind::Http => {
                let addresses: Vec<SocketAddr> =
                    self.gateways.iter().filter_map(|gateway| gateway.http).collect();
                http::run(&addresses, http::Commands::of(part), part).await
            }
        };
        Ok(answers?)
    }

    /// Payments over HTTP. All payment gateways survive the warm-up. After it, one of them may be killed in the first third.
    async fn pay(&mut self, part: &Part, gateway_dies: bool) -> Result<Answers, NoFigure> {
        let Some(payments) = &mut self.payments else {
            return Err(Failure("the payment service is not running".into()).into());
        };
        let addresses = [payments.address];
        let orders = http::Orders::new(format!("{}-{}", part.number, !part.is_warm_up()));
        let load = http::run(&addresses, orders, part);
        let death = async {
            if !part.is_warm_up() && gateway_dies {
                let third = part.lasting() / 3;
                tokio::time::sleep(third).await;
                return payments.kill_a_gateway(third).await;
            }
            Ok(())
        };
        let (answers, died) = tokio::join!(load, death);
        died?;
        Ok(answers?)
    }

    async fn end(self) -> Result<(), Error> {
        if let Some(payments) = self.payments {
            payments.stop().await?;
        }
        if let Some(mariadb) = self.mariadb {
            mariadb.stop().await?;
        }
        let gateways = self.gateways.into_iter().map(|gateway| gateway.child);
        let pgbouncer = self.pgbouncer.into_iter().map(|pgbouncer| pgbouncer.child);
        for child in gateways.chain(pgbouncer).chain(self.redis.map(|redis| redis.child)) {
            child.stop().await?;
        }
        Ok(())
    }
}

impl OtherLoad for Started {
    fn prepare<'a>(&'a mut self, testbed: &'a Testbed, part: &'a Part) -> Later<'a, Result<(), Failure>> {
        Box::pin(async move {
            if let Some(mariadb) = &mut self.mariadb {
                return mariadb.prepare(part).await;
            }
            let Kind::Peer(peer) = self.kind else { return Ok(()) };
            self.peers.enqueue(&self.job(testbed, part, peer)?).await
        })
    }

    fn run<'a>(&'a mut self, testbed: &'a Testbed, part: &'a Part) -> Later<'a, Result<Answers, NoFigure>> {
        Box::pin(self.make(testbed, part))
    }

    fn settle(&self) -> Later<'_, Result<(), NoFigure>> {
        Box::pin(async move {
            match &self.payments {
                Some(payments) => payments.settle().await,
                None => Ok(()),
            }
        })
    }

    fn read(&self) -> Option<Later<'_, Result<Reading, Error>>> {
        if let Some(mariadb) = &self.mariadb {
            return Some(Box::pin(mariadb.read()));
        }
        let redis = self.redis.as_ref()?;
        Some(Box::pin(redis.read()))
    }

    fn counted(&self) -> Option<Later<'_, Result<Counted, Error>>> {
        let mariadb = self.mariadb.as_ref()?;
        Some(Box::pin(mariadb.counted()))
    }

    fn children(&mut self) -> Vec<&mut Child> {
        let gateways = self.gateways.iter_mut().map(|gateway| &mut gateway.child);
        let pgbouncer = self.pgbouncer.iter_mut().map(|pgbouncer| &mut pgbouncer.child);
        let redis = self.redis.iter_mut().map(|redis| &mut redis.child);
        let payments = self.payments.iter_mut().map(|payments| &mut payments.service);
        let mariadb = self.mariadb.iter_mut().flat_map(|mariadb| &mut mariadb.gateway);
        mariadb.chain(payments).chain(gateways).chain(pgbouncer).chain(redis).collect()
    }

    fn stop(self: Box<Self>) -> Later<'static, Result<(), Error>> {
        Box::pin(self.end())
    }
}
