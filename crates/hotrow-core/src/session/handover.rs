//! Hands over the state that a session has left on its connection: the connection that all sessions of its role share
//! takes over its channels, and the session moves to the pool whose clients have its settings. Everything else keeps the
//! session on its connection.

use super::environment::Stop;
use super::executed::Executed;
use super::marks::Mark;
use super::sets::HeldSettings;
use super::state_left::StateLeft;
use super::takeover::TakesOver;
use super::{Connection, Environment, Named, Need, Parameters, Resolved, Session, StatementOf};
use crate::classify::Effect;
use crate::settings::Settings;

/// The state that was found, and the step that comes next.
pub(super) struct Handover {
    found: StateLeft,
    /// The shared connection has reported channels of the session before.
    was_shared: bool,
    step: Step,
}

/// Where a session is that would move to the pool with its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// In that pool.
    There,
    /// In the pool of its login, because there cannot be one more pool. The pool that it was in is free for others.
    ToLogIn,
    /// In the same pool as before, because there cannot be one more.
    Nowhere,
}

enum Step {
    TakeOver(TakesOver),
    Move(Settings),
    Restore,
}

impl<E: Environment> Session<E> {
    /// The server has said which state is left.
    pub fn state_found(&mut self, mut found: StateLeft) {
        let was_shared = self.listening.listens();
        let in_doubt = self.channels_in_doubt() && was_shared;
        let channels = found.channels.take();
        found.effect.listen = channels.as_ref().is_none_or(|found_there| !found_there.is_empty());
        let Some(channels) = channels else { return self.hand_over_settings(found, was_shared) };
        let added = self.channels_found(channels);
        let takes_over = match found.speaks_utf8 {
            true if added.is_empty() && !in_doubt => {
                found.effect.listen = false;
                None
            }
            true => Some(TakesOver::Shared(added)),
            // Only one connection that reports all channels shows their order.
            false => was_shared.then_some(TakesOver::Held),
        };
        match takes_over {
            Some(takes_over) => {
                self.held().handover = Some(Handover { found, was_shared, step: Step::TakeOver(takes_over) });
            }
            None => self.end_channels(found, was_shared),
        }
    }

    /// The other connection has taken over, or it cannot.
    pub fn took_over(&mut self, is_over: bool) {
        let Some(Handover { mut found, was_shared, step }) = self.held().handover.take() else { return };
        if let Step::TakeOver(TakesOver::Shared(_)) = step {
            found.effect.listen = !is_over;
            if !is_over && was_shared {
                let step = Step::TakeOver(TakesOver::Held);
                self.held().handover = Some(Handover { found, was_shared, step });
                return;
            }
        } else if !is_over {
            self.env.notifications_lost(); // it is not known which ones the client misses
        }
        self.end_channels(found, was_shared);
    }

    /// The shared connection no longer reports the channels that the server has not found.
    fn end_channels(&mut self, found: StateLeft, was_shared: bool) {
        let ended = self.listening.end_channels();
        let left = self.shared_channels().len();
        self.env.channels_ended(&ended, left);
        self.hand_over_settings(found, was_shared);
    }

    fn hand_over_settings(&mut self, mut found: StateLeft, was_shared: bool) {
        let of_pool = self.env.settings();
        let is_pinned = found.effect.pins() || self.held().marks.hidden().pins();
        let is_changed = found.settings.as_ref() != Some(&of_pool);
        if let Some(settings) = found.settings.as_ref().filter(|_| !is_pinned) {
            self.learn_sets(&of_pool, settings, found.speaks_utf8);
        }
        let step = match &found.settings {
            Some(_) if !is_pinned && !is_changed => Some(Step::Restore),
            Some(settings) if !is_pinned && self.may_move(&of_pool, settings) => {
                Some(Step::Move(settings.clone()))
            }
            Some(_) | None => None,
        };
        match step {
            Some(step) => self.held().handover = Some(Handover { found, was_shared, step }),
            None => {
                found.effect.settings = is_changed;
                self.state_is(&found);
            }
        }
    }

    /// A text of SETs is over after which its connection has these settings, if it has succeeded and nothing else ran.
    pub(super) fn sets_are_over(&mut self, settings: Settings) {
        let of_pool = self.env.settings();
        let may_move = self.may_move(&of_pool, &settings);
        let holding = self.held();
        if holding.marks.is_unproven() || !matches!(holding.marks.executed(), Executed::SetsOnly(_)) {
            return holding.marks.note(Mark::Doubt);
        }
        let is_exact = match holding.marks.settings() {
            HeldSettings::Own { is_exact, .. } => *is_exact,
            HeldSettings::AsPool | HeldSettings::Unclear => true,
        };
        if settings == of_pool {
            if is_exact {
                holding.marks.set_settings(HeldSettings::AsPool);
                let found = self.left_are(settings);
                self.state_is(&found);
            } else {
                self.hand_over_known(settings, Step::Restore);
            }
            return;
        }
        holding.marks.set_settings(HeldSettings::Own { settings: settings.clone(), is_exact });
        if may_move {
            self.hand_over_known(settings.clone(), Step::Move(settings));
        } else {
            let mut found = self.left_are(settings);
            found.effect.settings = true;
            self.state_is(&found);
        }
    }

    /// Whether a session that keeps its connection because of its settings tries again to move to a pool with them.
    pub(super) fn may_find_room(&mut self) -> bool {
        let holding = self.phase.held().expect("called only while a connection is held");
        let HeldSettings::Own { settings, .. } = holding.marks.settings() else { return false };
        let is_it = self.left().settings && !self.has_more_than_settings() && !holding.marks.is_unproven();
        if !is_it || !self.may_move(&self.env.settings(), settings) || !self.env.may_find_room() {
            return false;
        }
        let settings = settings.clone();
        self.hand_over_known(settings.clone(), Step::Move(settings));
        true
    }

    /// The state of a connection on which nothing is left but these settings.
    fn left_are(&mut self, settings: Settings) -> StateLeft {
        let prepared = Some(self.held().connection.prepared().count());
        let (effect, channels, speaks_utf8) = (Effect::NONE, None, false);
        StateLeft { effect, channels, speaks_utf8, prepared, settings: Some(settings) }
    }

    fn hand_over_known(&mut self, settings: Settings, step: Step) {
        let found = self.left_are(settings);
        self.held().handover = Some(Handover { found, was_shared: false, step });
    }

    /// The session has moved to the pool with its settings. If there cannot be one more pool, it keeps its connection.
    pub fn moved(&mut self, moved: Moved) {
        let Some(Handover { mut found, .. }) = self.held().handover.take() else { return };
        found.effect.settings = moved != Moved::There;
        let holding = self.held();
        match (&found.settings, holding.marks.settings()) {
            _ if moved == Moved::There => holding.marks.set_settings(HeldSettings::AsPool),
            (Some(settings), HeldSettings::Unclear) => {
                let settings = settings.clone();
                holding.marks.set_settings(HeldSettings::Own { settings, is_exact: false });
            }
            _ => {}
        }
        if moved != Moved::Nowhere {
            self.name_anew();
        }
        self.state_is(&found);
    }

    /// The connection has the settings of its pool.
    pub fn restored(&mut self) {
        if let Some(Handover { found, .. }) = self.held().handover.take() {
            self.held().marks.set_settings(HeldSettings::AsPool);
            self.state_is(&found);
        }
    }

    /// The server has refused to say which state is left, or to change it: the session keeps its connection.
    pub fn state_unknown(&mut self) {
        let effect = Effect { settings: true, ..Effect::NONE };
        self.held().handover = None;
        self.state_is(&StateLeft {
            effect,
            channels: None,
            speaks_utf8: false,
            settings: None,
            prepared: None,
        });
    }

    fn state_is(&mut self, found: &StateLeft) {
        let parses_otherwise = found.effect.settings
            && !found.settings.as_ref().is_some_and(|set| set.parses_as(&self.env.settings()));
        let holding = self.held();
        let is_complete = found.prepared == Some(holding.connection.prepared().count());
        holding.marks.found(found.effect, parses_otherwise, is_complete);
    }

    /// The statements that are to be judged before the server is asked which state is left.
    pub fn unjudged(&self) -> Vec<StatementOf<E>> {
        self.phase.held().map(|holding| holding.marks.unjudged().to_vec()).unwrap_or_default()
    }

    /// They are judged: they may have left this state although the server does not show it.
    pub fn judged(&mut self, hidden: Effect) {
        self.held().marks.judged(hidden);
    }

    /// Whether the state that was found is not handed over yet.
    pub fn hands_over(&self) -> bool {
        self.phase.held().is_some_and(|holding| holding.handover.is_some())
    }

    /// Asks for the next step, if the state that was found is not handed over yet. No message gets in between.
    pub(super) fn hand_over(&self) -> Result<(), Stop<E>> {
        let handover = self.phase.held().and_then(|holding| holding.handover.as_ref());
        let Some(Handover { step, .. }) = handover else { return Ok(()) };
        Err(Stop::Need(match step {
            Step::TakeOver(takes_over) => Need::TakeOver(takes_over.clone()),
            Step::Move(settings) => Need::Move(settings.clone()),
            Step::Restore => Need::Restore,
        }))
    }

    /// Whether the session leaves its pool, if it has other settings by now and there cannot be one more pool.
    pub fn may_go_to_login(&self) -> bool {
        self.env.has_settings() && self.may_move(&self.env.settings(), &Settings::default())
    }

    /// The session has other settings than before, as the other connections that it takes will have them. It has moved to
    /// another pool of the same user and database, whose clients have these settings, and so has its connection. Names of
    /// statements keep their meaning. The statements are prepared again when they are next used, because a setting can change
    /// the meaning of names.
    pub(super) fn name_anew(&mut self) {
        self.texts.forget();
        self.reads.leave_replica();
        for named in self.names.values_mut() {
            let statement = self.env.with_types(&named.statement, &named.statement.types);
            let resolved = named.resolved.as_ref().map(|resolved| Resolved::new(resolved.types.clone()));
            let text = std::mem::take(&mut named.text);
            *named = Named { statement, text, parsed: self.env.next_parse(), resolved, is_pinned: false };
        }
    }

    /// The session has entered the pool to which the message's SETs lead, and its client has to be told these parameters. Or
    /// that pool is not open.
    pub fn entered(&mut self, parameters: Option<Parameters>) {
        if parameters.is_some() {
            self.name_anew();
        }
        self.provided.entered = Some(parameters);
    }
}
