//! A simulated device as the format's offline code sees it, while no engine is at work on it: a flush makes durable all that it holds.

use super::SimDevice;
use larder_engine::format::{Medium, MediumError, MediumMut};

impl Medium for SimDevice {
    fn bytes(&self) -> u64 {
        self.content().len()
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), MediumError> {
        if self.is_unreadable(offset..offset + into.len() as u64) {
            return Err(MediumError { offset, reason: "the sector is bad".into() });
        }
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
        self.settle();
        Ok(())
    }

    fn zero(&mut self, offset: u64, bytes: u64) -> Result<(), MediumError> {
        self.content_mut().zero(offset, bytes);
        Ok(())
    }
}
