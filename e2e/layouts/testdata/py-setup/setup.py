from setuptools import find_packages, setup

setup(
    name="my-agent",
    version="0.1.0",
    packages=find_packages(),
    install_requires=["langgraph==1.2.22", "langchain-core==1.7.2"],
)
