//! A simulated device as the format's offline code sees it, while no engine is at work on it: what is written is durable at once.

use super::SimDevice;
use larder_engine::format::{Medium, MediumError, MediumMut};

impl Medium for SimDevice {
    fn bytes(&self) -> u64 {
        self.content().len()
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), MediumError> {
        self.content().read(offset, into);
        Ok(())
    }
}

impl MediumMut for SimDevice {
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        self.content_mut().write(offset, bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), MediumError> {
        Ok(())
    }
}
