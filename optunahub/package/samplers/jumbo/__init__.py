from jumbo_bo import JumboSampler

__all__ = ["JumboSampler"]
