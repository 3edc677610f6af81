//! What one core has: its way to the providers, and the world that all cores share.

use std::rc::Rc;
use std::sync::Arc;

use crate::chains::Chains;
use crate::line::Lines;
use crate::upstream::Upstream;
use crate::world::World;

/// One core's share of the gateway. It never leaves its thread.
pub(crate) struct Core {
    pub(crate) world: Arc<World>,
    pub(crate) upstream: Upstream,
    pub(crate) chains: Chains,
    pub(crate) lines: Lines,
}

impl Core {
    pub(crate) fn new(world: Arc<World>, upstream: Upstream) -> Rc<Self> {
        Rc::new(Self { world, upstream, chains: Chains::default(), lines: Lines::default() })
    }
}
