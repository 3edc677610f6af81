//! What an owner does with the orders of clients.

use koboshi::session::{Change, ClientFrame, Refusal, TurnState};
use serde_json::json;

use super::writing::Stored;
use super::{Owner, Stop, answer, forget, reply, reply_not_saved};
use crate::session::frames::Problem;
use crate::session::storage;
use crate::shared::sessions::{Command, Order, ReplyTo};
use koboshi::fault::{Kind, Sub};
use tokio::time::Instant;

/// Turns that stay where a client does not say how many.
const KEEP_TURNS: u32 = 10;

impl Owner<'_> {
    /// Does what a command says.
    pub(super) async fn obey(&mut self, command: &Command) -> Result<(), Stop> {
        match (&command.order, &command.reply) {
            (Order::Present(clients), ReplyTo::Elsewhere(process)) => {
                self.elsewhere.retain(|_, (at, _)| at != process);
                for client in clients {
                    self.seen(client, process);
                }
            }
            (Order::Frame(_), ReplyTo::Elsewhere(process)) => self.seen(&command.client, process),
            _ => {}
        }
        match &command.order {
            Order::Present(_) | Order::Recover => Ok(()),
            Order::Frame(frame) => self.frame(frame, command).await,
        }
    }

    /// A tab is connected to another process.
    fn seen(&mut self, client: &str, process: &str) {
        self.elsewhere.insert(client.to_owned(), (process.to_owned(), Instant::now()));
    }

    async fn frame(&mut self, frame: &ClientFrame, command: &Command) -> Result<(), Stop> {
        let limits = storage::limits(&self.plan.config.sessions);
        match frame {
            ClientFrame::Chat(chat) => {
                let Some(id) = chat.id.clone() else { return Ok(()) };
                let decided = self.live.log().chat(&id, chat, command.lang.name(), &limits);
                match decided {
                    Ok(Some(change)) => {
                        let change = if command.can_rewind { change } else { change.without_rewind() };
                        let change = change.paid_by(command.key.as_deref());
                        let is_running = self.segment.is_some();
                        if self.accept(change, command).await? && is_running {
                            self.leave_ended();
                        }
                    }
                    Ok(None) => self.accepted_before(&id, command),
                    Err(refusal) => self.refuse(refusal, command),
                }
                Ok(())
            }
            ClientFrame::Cancel { id, turn } => {
                let change = self.live.log().cancel(id, *turn);
                match change {
                    Some(change) => {
                        self.record(change).await?;
                        self.leave_ended();
                        Ok(())
                    }
                    None => Ok(()),
                }
            }
            ClientFrame::Retry { id, turn } => {
                let decided = self.live.log().retry(id, *turn);
                match decided {
                    Ok(Some(change)) => self.accept(change, command).await.map(drop),
                    Ok(None) => Ok(()),
                    Err(refusal) => {
                        self.refuse(refusal, command);
                        Ok(())
                    }
                }
            }
            ClientFrame::Trim { id, keep_turns } => {
                let change = self.live.log().trim(id, keep_turns.unwrap_or(KEEP_TURNS));
                match change {
                    Some(change) => self.accept(change, command).await.map(drop),
                    // One whose `trimmed` a snapshot took the place of would be sent for ever.
                    None => {
                        answer(self.core, self.live, command, json!({"type": "accepted", "id": id}));
                        Ok(())
                    }
                }
            }
            ClientFrame::ToolClaim { call } => {
                let decided = self.live.log().claim(call, &command.client);
                self.tool(decided, command).await
            }
            ClientFrame::ToolResult(result) => {
                let decided = self.live.log().result(result, &command.client);
                self.tool(decided, command).await?;
                if self.live.log().state() == TurnState::Running {
                    self.deadlines.clear();
                }
                Ok(())
            }
            ClientFrame::Bye { forget: true } => {
                self.segment = None;
                self.flight = None;
                forget(self.core, self.live).await;
                Err(Stop::Forgotten)
            }
            _ => Ok(()),
        }
    }

    async fn tool(
        &mut self,
        decided: Result<Option<Change>, Refusal>,
        command: &Command,
    ) -> Result<(), Stop> {
        match decided {
            Ok(Some(change)) => self.accept(change, command).await.map(drop),
            Ok(None) => Ok(()),
            Err(refusal) => {
                self.refuse(refusal, command);
                Ok(())
            }
        }
    }

    /// Stores an order and shows it; where the store is away the client learns that it was not accepted.
    async fn accept(&mut self, change: Change, command: &Command) -> Result<bool, Stop> {
        let stored = self.record_or_refuse(change).await?;
        if stored == Stored::Away {
            reply_not_saved(self.core, self.live, command);
        }
        Ok(stored == Stored::Done)
    }

    /// Lets the upstream go whose turn has ended.
    fn leave_ended(&mut self) {
        let open = self.live.log().transcript().open.as_ref().map(|open| open.turn);
        if open == Some(self.turn) {
            return;
        }
        self.segment = None;
        self.usage = None;
        self.deadlines.clear();
    }

    /// A chat that is known is answered as before.
    fn accepted_before(&self, id: &str, command: &Command) {
        let frame = {
            let log = self.live.log();
            let Some((turn, message)) = log.accepted(id) else { return };
            json!({"type": "accepted", "id": id, "turn": turn, "content": message.content})
        };
        answer(self.core, self.live, command, frame);
    }

    fn refuse(&self, refusal: Refusal, command: &Command) {
        let problem = match refusal {
            Refusal::Busy | Refusal::QueueFull => {
                Problem { sub: Some(Sub::Locked), ..Problem::of(Kind::Unavailable) }
            }
            Refusal::Moved(_) | Refusal::UnknownTurn | Refusal::UnknownCall | Refusal::Taken => {
                Problem::of(Kind::InvalidMessage).told("session-refused")
            }
        };
        reply(self.core, self.live, command, &problem.detail(refusal.to_string()));
    }
}
